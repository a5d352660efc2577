//! An HTTP server with replies of a test, which records requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a server was sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The first line and the headers.
    pub head: String,
    pub body: String,
}

/// A server that runs until the test ends.
pub struct HttpServer {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl HttpServer {
    /// Answers every request with 200 and the body that `answer` returns.
    pub fn up(answer: impl Fn(&Request) -> String + Send + Sync + 'static) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("it has an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        HttpServer { url, requests }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no answer panics").clone()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> String) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let request = read(&mut reader)?;
        kept.lock().ok()?.push(request.clone());
        let body = answer(&request);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(body.as_bytes())).ok()?;
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request { head, body: String::from_utf8(body).ok()? })
}
