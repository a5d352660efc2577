//! Whatever happens to the server under load, every take that was admitted is charged once, and no caller sees an
//! error.

mod common;

use std::time::Duration;

use common::load::{PLENTY, left, limits, take, under_load, until_taken};
use tollgate_redis::RedisStore;
use tollgate_redis_local::{Cluster, Proxy, ProxyFault, RespReply, SentinelGroup, Server, ServerKind};

/// How many takes pass between two faults.
const BREATH: i64 = 60;

fn open(url: &str) -> RedisStore {
    common::builder(url).build().wait().expect("the server is there")
}

fn ok(said: &RespReply) {
    assert_eq!(*said, RespReply::Text("OK".into()));
}

#[test]
fn scripts_that_are_flushed_are_told_again() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let store = open(&server.url());
        let tally = under_load(&store, 5, |tally| {
            for _ in 0..20 {
                until_taken(tally, BREATH);
                ok(&server.command(&["SCRIPT", "FLUSH"]));
            }
        });
        assert_eq!((left(&store, &limits()), tally.unknown()), (PLENTY - tally.taken(), 0));
        assert!(store.error_counts().scripts > 0);
    }
}

#[test]
fn answers_that_are_lost_charge_nothing_twice() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let proxy = Proxy::to(server.port());
        let store = open(&proxy.url());
        proxy.set(ProxyFault::LoseEvery(3));
        let tally = under_load(&store, 20, |tally| until_taken(tally, 4 * BREATH));
        proxy.set(ProxyFault::None);
        assert_eq!((left(&store, &limits()), tally.unknown()), (PLENTY - tally.taken(), 0));
        assert!(store.error_counts().connections > 20, "{:?}", store.error_counts());
    }
}

#[test]
fn a_server_that_starts_again_forgets_nothing_it_wrote_down() {
    for kind in ServerKind::ALL {
        let mut server =
            Server::with(kind, &["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
        let store = open(&server.url());
        let tally = under_load(&store, 5, |tally| {
            for _ in 0..3 {
                until_taken(tally, BREATH);
                server.restart();
            }
        });
        assert_eq!((left(&store, &limits()), tally.unknown()), (PLENTY - tally.taken(), 0));
    }
}

#[test]
fn a_pause_of_the_server_is_waited_for() {
    let server = Server::start(ServerKind::Redis);
    let store = open(&server.url());
    let tally = under_load(&store, 5, |tally| {
        for _ in 0..3 {
            until_taken(tally, BREATH);
            ok(&server.command(&["CLIENT", "PAUSE", "400", "ALL"]));
        }
    });
    assert_eq!((left(&store, &limits()), tally.unknown()), (PLENTY - tally.taken(), 0));
}

#[test]
fn a_failover_to_a_replica_is_followed_and_charges_nothing_twice() {
    for kind in ServerKind::ALL {
        let watched = SentinelGroup::start(kind);
        let store = open(&watched.url());
        let tally = under_load(&store, 20, |tally| {
            until_taken(tally, BREATH);
            let was = watched.replica.command(&["INFO", "replication"]);
            assert_eq!(was.field("role"), Some("slave"));
            watched.fail_over();
            until_taken(tally, BREATH);
        });
        assert_eq!(tally.unknown(), 0);
        // What the old master had admitted and not passed on is lost with it; nothing is charged twice.
        let charged = PLENTY - left(&store, &limits());
        assert!(charged <= tally.taken() && charged > 0, "{charged} of {}", tally.taken());
    }
}

#[test]
fn a_slot_that_moves_under_load_takes_everything_along() {
    for kind in ServerKind::ALL {
        let cluster = Cluster::start(kind);
        let store = RedisStore::builder(cluster.url()).prefix("moving").timeout(Duration::from_secs(30));
        let store = store.build().wait().expect("the cluster is there");
        let tally = under_load(&store, 5, |tally| {
            for _ in 0..3 {
                until_taken(tally, BREATH);
                let from = cluster.node_of("{moving}");
                assert_ne!(cluster.move_slot_of("{moving}"), from);
            }
            until_taken(tally, BREATH);
        });
        assert_eq!((left(&store, &limits()), tally.unknown()), (PLENTY - tally.taken(), 0));
    }
}

#[test]
fn a_call_that_nobody_stays_for_is_undone() {
    let server = Server::start(ServerKind::Redis);
    let proxy = Proxy::to(server.port());
    let store = open(&proxy.url());
    let limits = limits();
    take(&store, &limits).expect("it answers");
    proxy.set(ProxyFault::Delay(Duration::from_millis(200)));
    for _ in 0..5 {
        let key = tollgate_store::Key::new(&["entity", "resource"]);
        let costs = limits.costs(&tollgate_core::demand! { calls: 10, slots: 0 }).expect("it fits");
        let place = tollgate_store::BucketRef { namespace: "storm", key: &key, limits: &limits };
        let op = tollgate_store::Op::Take { costs: &costs, term: None };
        let steps = [tollgate_store::Step { place, op }];
        let call = tollgate_store::Transaction { id: None, steps: &steps, metered: true };
        // Begun and dropped: the answer is on its way.
        drop(tollgate_store::Reply::eager(tollgate_store::Store::apply(&store, &call)));
    }
    proxy.set(ProxyFault::None);
    let mut tries = 0;
    while left(&store, &limits) != PLENTY - 1 {
        tries += 1;
        assert!(tries < 10_000, "{} are left", left(&store, &limits));
    }
}
