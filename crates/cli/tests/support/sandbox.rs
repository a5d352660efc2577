//! A temporary directory for a command, with a clean environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

/// The program under test.
pub const TOLLGATE: &str = env!("CARGO_BIN_EXE_tollgate");

/// A temporary directory that is deleted on drop.
pub struct Sandbox {
    path: PathBuf,
    store: String,
}

/// The store of a sandbox, unless it has another.
pub const STORE: &str = "file:limits.db";

/// What a command wrote, and how it ended.
#[derive(Debug, PartialEq)]
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub exit: i32,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tollgate-cli-{}-{number}", std::process::id()));
        // A process that was killed leaves its folders, and this one may have its number.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("a folder for temporary files");
        Sandbox { path, store: STORE.into() }
    }

    /// The same with its store elsewhere.
    pub fn with_store(mut self, store: &str) -> Sandbox {
        self.store = store.into();
        self
    }

    /// Returns output in which the address of another store is replaced by that of the default one.
    pub fn as_if_here(&self, text: &str) -> String {
        text.replace(&self.store, STORE)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that has the sandbox for its home, and a store in it.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let bin = Path::new(TOLLGATE).parent().expect("the program is in a folder");
        command.current_dir(&self.path).env_clear();
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        command.env("HOME", &self.path).env("USER", "alice").env("LC_ALL", "C");
        command.env("TOLLGATE_STORE", &self.store);
        command
    }

    /// Runs a line as a shell would.
    pub fn shell(&self, line: &str) -> Ran {
        let output = self.command("sh").args(["-c", line]).output().expect("there is a shell");
        Ran::of(&output)
    }

    /// Runs the program with these words.
    pub fn tollgate(&self, words: &[&str]) -> Ran {
        let output = self.command(TOLLGATE).args(words).output().expect("the program is built");
        Ran::of(&output)
    }
}

impl Ran {
    /// Returns the output of a command.
    pub fn of(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            exit: output.status.code().unwrap_or(-1),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
