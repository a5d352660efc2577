//! A proxy that lets things go wrong.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::resp::answer_len;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// Nothing.
    None,
    /// Every so manieth answer is lost, and its connection with it: what it answers was done.
    LoseEvery(u64),
    /// Whatever comes from either side is swallowed.
    BlackHole,
    /// Every answer comes so much later.
    Delay(Duration),
    /// Every answer is something that no server says.
    Garbage,
    /// No connection is accepted for longer than a moment, and those there are break.
    Refuse,
}

/// A port that leads to another one.
pub struct Proxy {
    port: u16,
    shared: Arc<ProxyShared>,
}

struct ProxyShared {
    to: u16,
    fault: Mutex<ProxyFault>,
    answers: AtomicU64,
    is_over: AtomicBool,
}

impl ProxyShared {
    fn fault(&self) -> ProxyFault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// A proxy to a port of this host.
    ///
    /// # Panics
    ///
    /// If there is no free port.
    pub fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let own = listener.local_addr().expect("it listens").port();
        let shared = Arc::new(ProxyShared {
            to: port,
            fault: Mutex::new(ProxyFault::None),
            answers: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let proxy = Proxy { port: own, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::Acquire) {
                    return;
                }
                let shared = Arc::clone(&shared);
                if let Ok(client) = client {
                    thread::spawn(move || carry(client, &shared));
                }
            }
        });
        proxy
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What goes wrong from now on.
    pub fn set(&self, fault: ProxyFault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// How many answers it has seen.
    pub fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // So that the listener wakes up and sees it.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn carry(client: TcpStream, shared: &Arc<ProxyShared>) {
    if shared.fault() == ProxyFault::Refuse {
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.to)) else { return };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    let requests = Arc::clone(shared);
    let there = thread::spawn(move || carry_requests(from_client, to_server, &requests));
    carry_answers(&server, &client, shared);
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = there.join();
}

fn carry_requests(mut client: TcpStream, mut server: TcpStream, shared: &ProxyShared) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(len @ 1..) = client.read(&mut bytes) {
        match shared.fault() {
            ProxyFault::BlackHole => continue,
            ProxyFault::Refuse => break,
            _ if server.write_all(&bytes[..len]).is_err() => break,
            _ => {}
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn carry_answers(mut server: &TcpStream, mut client: &TcpStream, shared: &ProxyShared) {
    let (mut chunk, mut bytes) = ([0; 16 * 1024], Vec::new());
    while let Ok(len @ 1..) = server.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..len]);
        while let Some(len) = answer_len(&bytes) {
            let answer: Vec<u8> = bytes.drain(..len).collect();
            let number = shared.answers.fetch_add(1, Ordering::Relaxed) + 1;
            let told = match shared.fault() {
                ProxyFault::None => client.write_all(&answer),
                ProxyFault::LoseEvery(every) if number.is_multiple_of(every) => return,
                ProxyFault::LoseEvery(_) => client.write_all(&answer),
                ProxyFault::BlackHole => Ok(()),
                ProxyFault::Delay(time) => {
                    delay(time);
                    client.write_all(&answer)
                }
                ProxyFault::Garbage => client.write_all(b"!@#$ this is no answer\x00\xff\r\n"),
                ProxyFault::Refuse => return,
            };
            if told.is_err() {
                return;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "being late is what it is for")]
fn delay(time: Duration) {
    thread::sleep(time);
}
