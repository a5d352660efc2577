//! What each path costs, counted by the server.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{Level, Limit, Limiter, Limits, NewEntity, demand};
use tollgate_redis_local::{Server, ServerKind};

/// How many commands of clients there were: scripts, and whatever else comes without one.
fn calls(server: &Server) -> u64 {
    let info = server.command(&["INFO", "commandstats"]);
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
    for kind in ServerKind::ALL {
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
    let server = Server::start(ServerKind::Redis);
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
    let server = Server::start(ServerKind::Redis);
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

/// How often each command was carried out, by clients or in scripts.
fn commands(server: &Server) -> BTreeMap<String, u64> {
    let info = server.command(&["INFO", "commandstats"]);
    let counted = info.text().lines().filter_map(|line| {
        let (name, fields) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), fields.split(',').next()?.parse().ok()?))
    });
    counted.filter(|(name, _)| name != "info").collect()
}

/// How many bytes clients have sent.
fn received(server: &Server) -> u64 {
    let info = server.command(&["INFO", "stats"]);
    info.field("total_net_input_bytes").expect("it is counted").parse().expect("a number")
}

#[test]
fn an_acquire_that_nothing_is_waited_for_runs_no_command_for_waiters() {
    const ROUNDS: u64 = 100;
    let meters = || Limits::new([Limit::per_minute("rpm", 1_000_000)]).expect("it is valid");
    let by_meters = [("evalsha", 1), ("getrange", 1), ("set", 1), ("setrange", 1), ("time", 1)];
    let by_all = [("evalsha", 1), ("get", 1), ("set", 2), ("time", 1)];
    for (limits, expected, bytes) in [(meters(), &by_meters[..], 218), (three(), &by_all[..], 559)] {
        let server = Server::start(ServerKind::Redis);
        let store = tollgate_redis::RedisStore::builder(server.url()).prefix("costs").build().wait();
        let backend = Arc::new(store.expect("the server is there"));
        let limiter = Limiter::open(backend, "default").wait().expect("it answers");
        limiter.catalog().set_limits(Level::System, &limits).wait().expect("it answers");
        let acquire = || limiter.acquire("me", "gpt", demand! { rpm: 1 }).wait().expect("it fits");
        let mut leases = vec![acquire(), acquire()];
        let empty = received(&server);
        let overhead = received(&server) - empty;
        let (before, sent) = (commands(&server), received(&server));
        leases.extend((0..ROUNDS).map(|_| acquire()));
        let sent = received(&server) - sent - overhead;
        let after = commands(&server);
        let count = |all: &BTreeMap<String, u64>, name: &str| all.get(name).copied().unwrap_or(0);
        let each = |name: &String| (name.clone(), (count(&after, name) - count(&before, name)) / ROUNDS);
        let counted: Vec<(String, u64)> = after.keys().map(each).filter(|(_, count)| *count > 0).collect();
        let expected: Vec<(String, u64)> =
            expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(counted, expected);
        assert_eq!(sent / ROUNDS, bytes);
    }
}
