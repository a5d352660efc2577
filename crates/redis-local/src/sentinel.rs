//! A master, its replica, and a sentinel that watches over them.

use std::fs;
use std::time::Duration;

use crate::installed::Kind;
use crate::resp::{Client, Reply};
use crate::server::Server;

const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_millis(25);

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
    pub fn start(kind: Kind) -> Watched {
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

    #[expect(clippy::disallowed_methods, reason = "a replica tells nobody when it has caught up")]
    fn wait_for_the_replica(&self) {
        let until = |what: &str, is_so: &dyn Fn() -> bool| {
            for _ in 0..TRIES {
                if is_so() {
                    return;
                }
                std::thread::sleep(PAUSE);
            }
            panic!("{what}");
        };
        until("the replica did not catch up", &|| {
            self.replica.say(&["INFO", "replication"]).field("master_link_status") == Some("up")
        });
        until(
            "the sentinel does not know the replica",
            &|| matches!(self.sentinel.say(&["SENTINEL", "REPLICAS", NAME]), Reply::List(them) if !them.is_empty()),
        );
    }

    /// Makes the replica the master, and the master a replica.
    ///
    /// # Panics
    ///
    /// If the sentinel refuses to.
    #[expect(clippy::disallowed_methods, reason = "a sentinel tells nobody when it trusts a replica")]
    pub fn fail_over(&self) {
        let mut said = Reply::Nothing;
        for _ in 0..TRIES {
            said = self.sentinel.say(&["SENTINEL", "FAILOVER", NAME]);
            // It has not looked at the replica for a while, which it will.
            if !matches!(&said, Reply::Error(why) if why.starts_with("NOGOODSLAVE")) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        assert_eq!(said, Reply::Text("OK".into()));
    }

    /// Whether the replica is the master by now.
    pub fn is_promoted(&self) -> bool {
        let asked = Client::try_connect(self.replica.port());
        // Whoever is connected while it is promoted is cut off, and asks again.
        let told = asked.and_then(|mut client| client.try_say(&["INFO", "replication"]));
        told.is_ok_and(|told| told.field("role") == Some("master"))
    }
}
