//! Servers that the tests of one program share, and stores on them that have nothing in common.

#![allow(dead_code, reason = "every test uses some of it")]

pub(crate) mod load;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tollgate_redis::{RedisStore, RedisStoreBuilder};
use tollgate_redis_local::{Cluster, Server, ServerKind};
use tollgate_store::Clock;

/// The address of a server of this kind that all tests of the program share.
pub(crate) fn server(kind: ServerKind) -> &'static Server {
    static REDIS: OnceLock<Server> = OnceLock::new();
    static VALKEY: OnceLock<Server> = OnceLock::new();
    match kind {
        ServerKind::Redis => REDIS.get_or_init(|| Server::start(kind)),
        ServerKind::Valkey => VALKEY.get_or_init(|| Server::start(kind)),
    }
}

/// A cluster that all tests of the program share.
pub(crate) fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(ServerKind::Redis))
}

/// A store of its own at this address. Those of a cluster are in different slots.
pub(crate) fn builder(url: &str) -> RedisStoreBuilder {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    RedisStore::builder(url).prefix(prefix).timeout(Duration::from_secs(30))
}

pub(crate) fn open_at(url: &str, clock: Clock) -> RedisStore {
    builder(url).clock(clock).build().wait().expect("the server is there")
}

pub(crate) fn on_redis(clock: Clock) -> RedisStore {
    open_at(&server(ServerKind::Redis).url(), clock)
}

pub(crate) fn on_valkey(clock: Clock) -> RedisStore {
    open_at(&server(ServerKind::Valkey).url(), clock)
}

pub(crate) fn on_cluster(clock: Clock) -> RedisStore {
    open_at(&cluster().url(), clock)
}
