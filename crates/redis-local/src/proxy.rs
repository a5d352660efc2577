//! A proxy that injects faults.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::resp::answer_len;

/// The fault of a proxy.
///
/// ```
/// use std::time::Duration;
/// use tollgate_redis_local::ProxyFault;
///
/// let slow = ProxyFault::Delay(Duration::from_millis(200));
/// assert_ne!(slow, ProxyFault::None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFault {
    /// No fault.
    None,
    /// Every n-th reply is lost, with its connection. The server has executed the command.
    LoseEvery(u64),
    /// Data from both sides is dropped.
    BlackHole,
    /// Every reply is delayed.
    Delay(Duration),
    /// Every reply is replaced by bytes that are not RESP.
    Garbage,
    /// New connections are closed at once, and open ones break.
    Refuse,
}

/// A port that forwards to another one, with faults.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
/// use tollgate_redis_local::Proxy;
///
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let proxy = Proxy::to(listener.local_addr()?.port());
/// let mut client = TcpStream::connect(("127.0.0.1", proxy.port()))?;
/// client.write_all(b"PING\r\n")?;
/// let (mut server, _) = listener.accept()?;
/// server.write_all(b"+PONG\r\n")?;
/// let mut reply = [0; 7];
/// client.read_exact(&mut reply)?;
/// assert_eq!((&reply, proxy.answers()), (b"+PONG\r\n", 1));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Proxy {
    port: u16,
    shared: Arc<ProxyShared>,
}

struct ProxyShared {
    to: u16,
    fault: Mutex<ProxyFault>,
    answers: AtomicU64,
    is_closed: AtomicBool,
}

impl ProxyShared {
    fn fault(&self) -> ProxyFault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Creates a proxy to a port of this host.
    ///
    /// # Panics
    ///
    /// Panics if no port is free.
    pub fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let own = listener.local_addr().expect("it listens").port();
        let shared = Arc::new(ProxyShared {
            to: port,
            fault: Mutex::new(ProxyFault::None),
            answers: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        });
        let proxy = Proxy { port: own, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_closed.load(Ordering::Acquire) {
                    return;
                }
                let shared = Arc::clone(&shared);
                if let Ok(client) = client {
                    thread::spawn(move || forward(client, &shared));
                }
            }
        });
        proxy
    }

    /// Returns the port that the proxy listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sets the fault from now on.
    pub fn set(&self, fault: ProxyFault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Returns how many replies the proxy has received from the server.
    pub fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn forward(client: TcpStream, shared: &Arc<ProxyShared>) {
    if shared.fault() == ProxyFault::Refuse {
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.to)) else { return };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    let requests = Arc::clone(shared);
    let requests = thread::spawn(move || forward_requests(from_client, to_server, &requests));
    forward_answers(&server, &client, shared);
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = requests.join();
}

fn forward_requests(mut client: TcpStream, mut server: TcpStream, shared: &ProxyShared) {
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

fn forward_answers(mut server: &TcpStream, mut client: &TcpStream, shared: &ProxyShared) {
    let (mut chunk, mut bytes) = ([0; 16 * 1024], Vec::new());
    while let Ok(len @ 1..) = server.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..len]);
        while let Some(len) = answer_len(&bytes) {
            let answer: Vec<u8> = bytes.drain(..len).collect();
            let number = shared.answers.fetch_add(1, Ordering::Relaxed) + 1;
            let written = match shared.fault() {
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
            if written.is_err() {
                return;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the delay is the fault")]
fn delay(time: Duration) {
    thread::sleep(time);
}
