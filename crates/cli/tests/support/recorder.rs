//! A server that records requests, and answers all of them alike.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A reply that any client of OpenAI takes for an answer.
const REPLY: &str = r#"{"object":"chat.completion","usage":{"prompt_tokens":1000,"completion_tokens":1000,"total_tokens":2000}}"#;

/// One that listens until the test ends.
pub struct Recorder {
    pub address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub fn up() -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        // It ends with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = answer(stream);
                kept.lock().expect("no test panicked with it").push(request);
            }
        });
        Recorder { address, requests }
    }

    /// The heads of the requests so far: a line for the request and one for each header, in lower case but for the first.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no test panicked with it").clone()
    }
}

fn answer(mut stream: TcpStream) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer).expect("it can be read");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if read == 0 || body.len() >= length.unwrap_or(0) {
            let length = REPLY.len();
            let head = head.to_owned();
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{REPLY}")
                .expect("it reads");
            return head;
        }
    }
}
