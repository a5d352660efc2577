//! What each path costs, counted by the server.

mod common;

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Level, Limit, Limiter, Limits, NewEntity, demand};
use tollgate_redis_local::{Kind, Server};

/// How many commands of clients there were: scripts, and whatever else comes without one.
fn calls(server: &Server) -> u64 {
    let info = server.say(&["INFO", "commandstats"]);
    let of = |name: &str| {
        let field = info.field(&format!("cmdstat_{name}"))?;
        field.strip_prefix("calls=")?.split(',').next()?.parse::<u64>().ok()
    };
    ["evalsha", "eval", "script|load", "mget"].iter().filter_map(|name| of(name)).sum()
}

fn three() -> Limits {
    let limits = [
        Limit::per_minute("rpm", 1_000_000),
        Limit::per_minute("tpm", 10_000_000),
        Limit::resource("slots", 1_000),
    ];
    Limits::new(limits).expect("they are valid")
}

fn open(server: &Server) -> Limiter {
    let store = common::builder(&server.url()).timeout(Duration::from_secs(30)).build().wait();
    Limiter::open(Arc::new(store.expect("the server is there")), "default").wait().expect("it answers")
}

#[test]
fn a_warm_acquire_is_one_call_and_so_is_its_end() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        let limiter = open(&server);
        limiter.catalog().set_limits(Level::System, &three()).wait().expect("it answers");
        let acquire = || limiter.acquire("me", "gpt", demand! { rpm: 1, tpm: 10 }).wait().expect("it fits");
        acquire().settle(demand! { tpm: 5 }).wait().expect("it answers");
        for _ in 0..100 {
            let before = calls(&server);
            let lease = acquire();
            let taken = calls(&server);
            lease.settle(demand! { tpm: 5 }).wait().expect("it answers");
            assert_eq!((taken - before, calls(&server) - taken), (1, 1));
        }
    }
}

#[test]
fn a_warm_chain_is_one_call() {
    let server = Server::start(Kind::Redis);
    let limiter = open(&server);
    let catalog = limiter.catalog();
    catalog.set_limits(Level::System, &three()).wait().expect("it answers");
    catalog.create_entity(NewEntity::new("org")).wait().expect("it answers");
    catalog.create_entity(NewEntity::new("team").parent("org").cascades(true)).wait().expect("it answers");
    catalog.create_entity(NewEntity::new("me").parent("team").cascades(true)).wait().expect("it answers");
    let acquire = || limiter.acquire("me", "gpt", demand! { rpm: 1, tpm: 10 }).wait().expect("it fits");
    acquire().settle(demand! { tpm: 5 }).wait().expect("it answers");
    for _ in 0..20 {
        let before = calls(&server);
        let lease = acquire();
        assert_eq!(calls(&server) - before, 1);
        lease.settle(demand! { tpm: 5 }).wait().expect("it answers");
    }
}

#[test]
fn a_denial_is_one_call() {
    let server = Server::start(Kind::Redis);
    let limiter = open(&server);
    let limits = Limits::new([Limit::per_day("rpm", 2)]).expect("it is valid");
    limiter.catalog().set_limits(Level::System, &limits).wait().expect("it answers");
    let acquire = || limiter.try_acquire("me", "gpt", demand! { rpm: 1 }).wait().expect("it answers");
    let leases = [acquire(), acquire()];
    drop(acquire());
    for _ in 0..20 {
        let before = calls(&server);
        drop(acquire());
        assert_eq!(calls(&server) - before, 1);
    }
    drop(leases);
}
