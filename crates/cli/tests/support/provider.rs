//! The mock provider, as a program.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::sandbox::{Sandbox, TOLLGATE};

/// One that is up, and ends with the test.
pub struct Provider {
    pub address: String,
    process: Child,
    _folder: Sandbox,
}

impl Provider {
    pub fn up(words: &[&str]) -> Provider {
        let folder = Sandbox::new();
        let mut up = folder.command(TOLLGATE);
        up.args(["mock-provider", "--json"]).args(words).stdout(Stdio::piped());
        let mut process = up.spawn().expect("the program is built");
        let mut answer = process.stdout.take().expect("it is piped");
        let mut text = String::new();
        // It keeps running after its output, so the stream has no end to read to.
        let answer = loop {
            if let Ok(answer) = serde_json::from_str::<Value>(&text) {
                break answer;
            }
            let mut byte = [0];
            assert_eq!(answer.read(&mut byte).expect("the answer can be read"), 1, "it ended with {text:?}");
            text.push(char::from(byte[0]));
        };
        let address = answer["address"].as_str().expect("the answer names the address").to_owned();
        assert_eq!(answer["url"], format!("http://{address}"));
        Provider { address, process, _folder: folder }
    }

    pub fn ask(&self, request: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it is up");
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    pub fn end(&mut self, signal: Signal) -> Option<i32> {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).expect("it has a number");
        kill_process(pid, signal).expect("it is ours");
        self.process.wait().expect("it can be waited for").code()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
