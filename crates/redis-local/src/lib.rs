//! Redis and Valkey on this host, for tests and benchmarks: servers, a master with a replica and a sentinel, a cluster, and
//! a proxy that lets things go wrong on the way to them.
//!
//! Servers listen on free ports of the loopback, keep their files in a folder of their own, and end with the process
//! that started them, also if that is killed.

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
pub use sentinel::Watched;
pub use server::Server;
