//! Redis and Valkey servers on this host, for tests and benchmarks: single servers, a master with a
//! replica and a sentinel, a cluster, and a proxy that injects faults.
//!
//! Servers listen on free ports of the loopback interface, store their files in a temporary folder,
//! and stop with the process that started them, even if that is killed.
//!
//! ```no_run
//! use tollgate_redis_local::{Proxy, ProxyFault, RespReply, Server, ServerKind};
//!
//! let server = Server::start(ServerKind::Redis);
//! assert_eq!(server.command(&["SET", "key", "1"]), RespReply::Text("OK".into()));
//! let proxy = Proxy::to(server.port());
//! proxy.set(ProxyFault::LoseEvery(3));
//! println!("connect to {}", proxy.url());
//! ```

mod cluster;
mod installed;
mod port;
mod proxy;
mod resp;
mod sentinel;
mod server;

pub use cluster::Cluster;
pub use installed::ServerKind;
pub use port::Port;
pub use proxy::{Proxy, ProxyFault};
pub use resp::{Client, RespReply};
pub use sentinel::SentinelGroup;
pub use server::Server;
