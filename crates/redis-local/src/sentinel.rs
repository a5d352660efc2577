//! A master, its replica, and a sentinel that watches over them.

use std::fs;
use std::time::Duration;

use crate::installed::ServerKind;
use crate::resp::{Client, RespReply};
use crate::server::Server;

const TRIES: u32 = 2_400;
const PAUSE: Duration = Duration::from_millis(25);

/// After so many looks a failover is asked for again.
const ASKED_AGAIN: u32 = 200;

/// The name that the sentinel knows the master by.
const NAME: &str = "watched";

/// A master, its replica and a sentinel. They end when this is dropped.
pub struct Watched {
    /// Who is the master to begin with.
    pub master: Server,
    /// Who is the replica to begin with.
    pub replica: Server,
    sentinel: Server,
}

impl Watched {
    /// Starts them, and waits until the replica has caught up.
    pub fn start(kind: ServerKind) -> Watched {
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
        let watched = Watched { master, replica, sentinel };
        watched.wait_for_the_replica();
        watched
    }

    /// The address.
    pub fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/{NAME}", self.sentinel.port())
    }

    fn wait_for_the_replica(&self) {
        until("the replica did not catch up", || {
            self.replica.say(&["INFO", "replication"]).field("master_link_status") == Some("up")
        });
        until(
            "the sentinel does not know the replica",
            || matches!(self.sentinel.say(&["SENTINEL", "REPLICAS", NAME]), RespReply::List(them) if !them.is_empty()),
        );
    }

    /// Makes the replica the master, and the master a replica, and waits until it is.
    pub fn fail_over(&self) {
        for look in 0..TRIES {
            // The sentinel may have given it up on a host that is busy.
            if look % ASKED_AGAIN == 0 {
                self.sentinel.say(&["SENTINEL", "FAILOVER", NAME]);
            }
            pause();
            if self.is_the_replica_master() {
                return;
            }
        }
        panic!("the replica did not become the master");
    }

    /// Returns whether the replica is the master. A server that becomes the master closes all connections, so there may
    /// be no answer.
    fn is_the_replica_master(&self) -> bool {
        let told = Client::try_connect(self.replica.port())
            .and_then(|mut replica| replica.try_say(&["INFO", "replication"]));
        told.is_ok_and(|told| told.field("role") == Some("master"))
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..TRIES {
        if is_so() {
            return;
        }
        pause();
    }
    panic!("{what}");
}

#[expect(clippy::disallowed_methods, reason = "a server tells nobody what has become of it")]
fn pause() {
    std::thread::sleep(PAUSE);
}
