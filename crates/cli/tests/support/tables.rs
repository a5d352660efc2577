//! Tables of DynamoDB, served by the command itself.

use std::io::Read;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::sandbox::{Sandbox, TOLLGATE};

/// A server, and a table in it.
pub struct Tables {
    /// The store that is in the table.
    pub store: String,
    server: Child,
    _folder: Sandbox,
}

impl Tables {
    /// Starts a server on a free port.
    pub fn up() -> Tables {
        let folder = Sandbox::new();
        let mut up = folder.command(TOLLGATE);
        up.args(["local", "up", "--port", "0", "--json"]).stdout(Stdio::piped());
        let mut server = up.spawn().expect("the program is built");
        let mut answer = server.stdout.take().expect("it is piped");
        let mut text = String::new();
        // It keeps running after its output, so the stream has no end to read to.
        while serde_json::from_str::<Value>(&text).is_err() {
            let mut byte = [0];
            assert_eq!(answer.read(&mut byte).expect("the answer can be read"), 1, "it ended with {text:?}");
            text.push(char::from(byte[0]));
        }
        let answer: Value = serde_json::from_str(&text).expect("it was read before");
        let store = answer["store"].as_str().expect("the answer names the store").to_owned();
        Tables { store, server, _folder: folder }
    }

    /// Returns the same for another table, which its first user makes.
    pub fn another(&self, table: &str) -> String {
        self.store.replacen("limits?", &format!("{table}?"), 1) + "&create=true"
    }

    /// Asks the server to end, and returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw).expect("it has a number");
        kill_process(pid, Signal::TERM).expect("it is ours");
        self.server.wait().expect("it can be waited for").code()
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
