//! Children: started, listened to, killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use crate::child::{Task, What};

/// A child, and all that it said.
pub(crate) struct Kin {
    child: Child,
    lines: Receiver<String>,
    reader: Option<JoinHandle<()>>,
}

impl Kin {
    pub(crate) fn start(what: What, path: &Path) -> Kin {
        let this = std::env::current_exe().expect("this program can be found");
        let task = Task { what, path: path.into() };
        let mut child = Command::new(this)
            .envs(task.environment())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        let out = child.stdout.take().expect("it was asked for");
        let (say, lines) = mpsc::channel();
        let reader = thread::spawn(move || {
            // What was said before a kill is still in the pipe, and a line that was cut off was not said.
            let mut out = BufReader::new(out);
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|read| read > 0) && line.ends_with('\n') {
                let _ = say.send(line.trim_end().to_string());
                line.clear();
            }
        });
        Kin { child, lines, reader: Some(reader) }
    }

    /// Waits for the next thing that it says.
    pub(crate) fn hear(&self) -> String {
        self.lines.recv().expect("the child died before it said anything")
    }

    /// The next thing that it said, if it has said any.
    pub(crate) fn heard(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Waits until it is done, and answers the rest of what it said.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let status = self.child.wait().expect("it can be waited for");
        assert!(status.success(), "a child failed: {status}");
        self.rest()
    }

    /// Kills it with no warning, and answers the rest of what it said.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
        self.rest()
    }

    fn rest(&mut self) -> Vec<String> {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("reading does not panic");
        }
        self.lines.try_iter().collect()
    }
}

/// However a test ends, no child outlives it.
impl Drop for Kin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
