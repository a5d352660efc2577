//! A master, its replica, and a sentinel that monitors them.

use std::fs;
use std::time::Duration;

use crate::installed::ServerKind;
use crate::resp::{Client, RespReply};
use crate::server::Server;

const TRIES: u32 = 2_400;
const PAUSE: Duration = Duration::from_millis(25);

/// The number of checks after which the failover is requested again.
const REQUEST_AGAIN_AFTER: u32 = 200;

/// The name of the master in the sentinel's configuration.
const NAME: &str = "watched";

/// A master, its replica and a sentinel. Dropping it stops them.
///
/// ```no_run
/// use tollgate_redis_local::{ServerKind, SentinelGroup};
///
/// let servers = SentinelGroup::start(ServerKind::Redis);
/// servers.fail_over();
/// println!("{}", servers.url());
/// ```
pub struct SentinelGroup {
    /// The initial master.
    pub master: Server,
    /// The initial replica.
    pub replica: Server,
    sentinel: Server,
}

impl SentinelGroup {
    /// Starts the servers, and waits until the replica is in sync.
    pub fn start(kind: ServerKind) -> SentinelGroup {
        let plain = ["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"];
        let master = Server::with(kind, &plain);
        let port = master.port().to_string();
        let replica = Server::with(kind, &[&plain[..], &["--replicaof", "127.0.0.1", &port]].concat());
        let file = replica.folder().join("sentinel.conf");
        let config = format!(
            "sentinel monitor {NAME} 127.0.0.1 {port} 1\nsentinel down-after-milliseconds {NAME} 1000\n\
             sentinel failover-timeout {NAME} 5000\n"
        );
        fs::write(&file, config).expect("the folder of a server is there");
        let sentinel = Server::sentinel(kind, &file);
        let watched = SentinelGroup { master, replica, sentinel };
        watched.wait_for_the_replica();
        watched
    }

    /// Returns the address, which names the sentinel.
    pub fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/{NAME}", self.sentinel.port())
    }

    fn wait_for_the_replica(&self) {
        until("the replica did not sync", || {
            self.replica.command(&["INFO", "replication"]).field("master_link_status") == Some("up")
        });
        until(
            "the sentinel does not know the replica",
            || matches!(self.sentinel.command(&["SENTINEL", "REPLICAS", NAME]), RespReply::List(replicas) if !replicas.is_empty()),
        );
    }

    /// Makes the replica the master and the master a replica, and waits until it is done.
    ///
    /// # Panics
    ///
    /// The replica does not become the master in time.
    pub fn fail_over(&self) {
        for check in 0..TRIES {
            // On a busy host the sentinel may have given up.
            if check % REQUEST_AGAIN_AFTER == 0 {
                self.sentinel.command(&["SENTINEL", "FAILOVER", NAME]);
            }
            pause();
            if self.is_the_replica_master() {
                return;
            }
        }
        panic!("the replica did not become the master");
    }

    /// Returns true if the replica is the master. A server that becomes the master closes all
    /// connections, so there may be no reply.
    fn is_the_replica_master(&self) -> bool {
        let info = Client::try_connect(self.replica.port())
            .and_then(|mut replica| replica.try_command(&["INFO", "replication"]));
        info.is_ok_and(|info| info.field("role") == Some("master"))
    }
}

fn until(failure: &str, is_done: impl Fn() -> bool) {
    for _ in 0..TRIES {
        if is_done() {
            return;
        }
        pause();
    }
    panic!("{failure}");
}

#[expect(clippy::disallowed_methods, reason = "a server does not notify when it is ready")]
fn pause() {
    std::thread::sleep(PAUSE);
}
