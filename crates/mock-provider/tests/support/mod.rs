//! A provider on a free port, and a minimal HTTP client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;
use tollgate::{ManualClock, Tick};
use tollgate_mock_provider::{MockProvider, MockProviderBuilder};
use tollgate_provider::{Hint, Response};

/// 2026-11-15T12:00:00Z.
pub(crate) const NOON: u64 = 1_794_744_000;

/// A running provider with a manual clock.
pub(crate) struct TestServer {
    pub(crate) provider: MockProvider,
    pub(crate) clock: ManualClock,
    pub(crate) address: SocketAddr,
    _runtime: Runtime,
}

impl TestServer {
    pub(crate) fn new(builder: MockProviderBuilder) -> TestServer {
        let clock = ManualClock::at(Tick::from_secs(NOON));
        let provider = builder.clock(clock.clock()).build().expect("the settings are valid");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let serving = provider.clone();
        runtime.spawn(async move { serving.serve(listener).await });
        TestServer { provider, clock, address, _runtime: runtime }
    }

    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.clock.now().as_micros())
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).expect("it is up")
    }

    /// Sends a request without waiting for its reply.
    pub(crate) fn send(&self, path: &str, key: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {key}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        stream.write_all(body.as_bytes()).expect("it reads");
        stream
    }

    pub(crate) fn call(&self) -> HttpReply {
        HttpReply::from(self.send("/v1/chat/completions", "key-1", CHAT)).expect("it answers")
    }

    pub(crate) fn get(&self, path: &str) -> HttpReply {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("it reads");
        HttpReply::from(stream).expect("it answers")
    }

    pub(crate) fn read(&self, reply: &HttpReply) -> Hint {
        let headers: Vec<(&str, &str)> =
            reply.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        tollgate_provider::read(&Response::new(reply.status, &headers, reply.body.as_bytes()), self.now())
    }
}

/// A request with 23 tokens of input.
pub(crate) const CHAT: &str = r#"{"model":"m","max_tokens":40,"messages":[{"role":"user","content":"How far is it to the next gate, and what is the toll?"}]}"#;

/// A reply.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpReply {
    /// Reads until the server closes the connection; `None` if that is not a reply.
    pub(crate) fn from(mut stream: TcpStream) -> Option<HttpReply> {
        let mut bytes = Vec::new();
        // A reset after the reply does not invalidate it.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).expect("it is text");
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(HttpReply { status, headers: headers.collect(), body: body.to_owned() })
    }
}
