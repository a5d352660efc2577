//! The provider that is none, as a program: it says where it is, answers, and ends when it is told to.
#![cfg(all(unix, feature = "mock-provider"))]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::sandbox::{Sandbox, TOLLGATE};

struct Provider {
    address: String,
    process: Child,
    _folder: Sandbox,
}

impl Provider {
    fn up(words: &[&str]) -> Provider {
        let folder = Sandbox::new();
        let mut up = folder.command(TOLLGATE);
        up.args(["mock-provider", "--json"]).args(words).stdout(Stdio::piped());
        let mut process = up.spawn().expect("the program is built");
        let mut answer = process.stdout.take().expect("it is piped");
        let mut text = String::new();
        // It goes on after its answer, so there is no end of the stream to read to.
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

    fn ask(&self, request: &str, body: &str) -> String {
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

    fn end(&mut self, signal: Signal) -> Option<i32> {
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

#[test]
fn it_answers_limits_and_ends_when_it_is_told_to() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut provider = Provider::up(&["--style", "anthropic", "--spend-cap", "2", "--outage", "529/4"]);
        let call = || provider.ask("POST /v1/messages", r#"{"messages":[]}"#);
        assert!(call().starts_with("HTTP/1.1 200"));
        assert!(call().starts_with("HTTP/1.1 200"));
        let exhausted = call();
        assert!(
            exhausted.starts_with("HTTP/1.1 429") && exhausted.contains("enforced_spend_limit_reached"),
            "{exhausted}"
        );
        assert!(call().starts_with("HTTP/1.1 529"));
        let stats = provider.ask("GET /stats", "");
        assert!(stats.contains(r#""calls":4,"ok":2"#), "{stats}");
        assert_eq!(provider.end(signal), Some(0));
    }
}

#[test]
fn it_ends_though_a_call_is_being_answered() {
    let mut provider = Provider::up(&["--latency", "1h"]);
    let mut hanging = TcpStream::connect(&provider.address).expect("it is up");
    hanging
        .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 15\r\n\r\n{\"messages\":[]}")
        .expect("it reads");
    while !provider.ask("GET /stats", "").contains(r#""concurrent":1"#) {}
    assert_eq!(provider.end(Signal::TERM), Some(0));
    assert_eq!(hanging.read(&mut [0; 1]).unwrap_or(0), 0, "there is no answer");
}
