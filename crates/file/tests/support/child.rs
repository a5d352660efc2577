//! Other processes: the test binary itself, whose environment says what to be.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const ROLE: &str = "TOLLGATE_TEST_ROLE";
const FILE: &str = "TOLLGATE_TEST_FILE";

/// What this process is to be, and with which file. `None` if it is not one of these processes.
pub fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(FILE)?.into()))
}

/// A process that runs the test `entry` of this binary as `role`. It is killed when it is dropped.
pub struct Process {
    pub child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

pub fn command(entry: &str, role: &str, file: &Path) -> Command {
    command_of(&std::env::current_exe().expect("this binary has a path"), entry, role, file)
}

/// As [`command`], with a copy of the test binary.
pub fn command_of(program: &Path, entry: &str, role: &str, file: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([entry, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(FILE, file).stdout(Stdio::piped());
    command
}

impl Process {
    pub fn start(entry: &str, role: &str, file: &Path) -> Process {
        let mut child = command(entry, role, file).spawn().expect("a process can be started");
        let stdout = child.stdout.take().expect("its output is ours");
        Process { child, lines: BufReader::new(stdout).lines() }
    }

    /// What it says next with [`say`]; `None` once it has ended.
    pub fn hears(&mut self) -> Option<String> {
        let said = |line: String| line.strip_prefix("says ").map(str::to_owned);
        self.lines.by_ref().map_while(Result::ok).find_map(said)
    }

    /// Kills it as hard as it can be done, and answers all that it has said.
    pub fn kill(&mut self) -> Vec<String> {
        self.child.kill().expect("it can be killed");
        let said = std::iter::from_fn(|| self.hears()).collect();
        self.child.wait().expect("it has ended");
        said
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says something to the process that started this one. In one write, so that a line is said or not.
pub fn say(what: &str) {
    use std::io::Write;
    // In front of it the test harness may have written without an end of line.
    let line = format!("\nsays {what}\n");
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
    let _ = std::io::stdout().lock().flush();
}
