//! Taking ahead: few calls, never more than there is, and nothing kept that no caller wants.

#![allow(clippy::disallowed_methods, reason = "what others do in the background is waited for")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use tollgate::catalog::{Level, UsageQuery, Window};
use tollgate::{Limit, Limiter, Limits, NewEntity, demand};
use tollgate_core::Tick;
use tollgate_redis::{RedisStore, RedisStoreBuilder};
use tollgate_redis_local::{Proxy, ProxyFault, Server, ServerKind};
use tollgate_store::{
    Backend, BucketRef, Key, ManualClock, Op, OpId, Scope, Step, Store, StoreError, Transaction, TxnOutcome,
};

const START: Tick = Tick::from_secs(1_800_000_000);
const IDLE: Duration = Duration::from_millis(200);

fn builder(hands: &ManualClock, url: &str, percent: u8) -> RedisStoreBuilder {
    let builder = RedisStore::builder(url).timeout(Duration::from_secs(30));
    builder.clock(hands.clock()).prefetch(percent, IDLE)
}

fn limiter(hands: &ManualClock, url: &str, percent: u8) -> Limiter {
    let store = builder(hands, url, percent).build().wait().expect("the server is there");
    Limiter::open(Arc::new(store), "default").wait().expect("it answers")
}

fn set(limiter: &Limiter, rpm: u64, tpm: u64) {
    let limits = [Limit::per_hour("rpm", rpm), Limit::per_hour("tpm", tpm)];
    let limits = Limits::new(limits).expect("they are valid");
    limiter.catalog().set_limits(Level::Resource("gpt-4"), &limits).wait().expect("it answers");
}

fn take(limiter: &Limiter, tokens: u64) -> bool {
    let attempt = limiter.try_acquire("user", "gpt-4", demand! { rpm: 1, tpm: tokens }).wait();
    let lease = attempt.expect("it answers").admitted();
    lease.is_some_and(|lease| lease.settle(demand! { tpm: tokens / 2 }).wait().is_ok())
}

fn left(limiter: &Limiter, entity: &str) -> (Option<i64>, Option<i64>) {
    let standing = limiter.available(entity, "gpt-4").wait().expect("it answers");
    (standing.available("rpm"), standing.available("tpm"))
}

fn used(limiter: &Limiter, entity: &str) -> Vec<(u64, i64, i64)> {
    let query = UsageQuery::of_entity(entity, Window::Day);
    let usage = limiter.catalog().usage(query).wait().expect("it answers").items;
    usage.iter().map(|row| (row.events, row.amounts["rpm"], row.amounts["tpm"])).collect()
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..400 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("{what}: not within ten seconds");
}

/// How many scripts there were.
fn calls(server: &Server) -> u64 {
    let info = server.command(&["INFO", "commandstats"]);
    let field = info.field("cmdstat_evalsha").expect("there were scripts");
    let count = field.strip_prefix("calls=").and_then(|rest| rest.split(',').next());
    count.expect("it is counted").parse().expect("it is a number")
}

#[test]
fn most_takes_need_no_call() {
    for kind in ServerKind::ALL {
        let (hands, server) = (ManualClock::at(START), Server::start(kind));
        let limiter = limiter(&hands, &server.url(), 5);
        set(&limiter, 1_000_000, 1_000_000_000);
        assert!(take(&limiter, 100));
        let before = calls(&server);
        for _ in 0..2_000 {
            assert!(take(&limiter, 100));
        }
        let calls = calls(&server) - before;
        assert!(calls < 60, "{calls} calls for 2,000 takes and their settlements");
    }
}

/// One script takes a portion of all buckets of a chain; what is used is counted for all of them.
#[test]
fn most_takes_from_a_chain_need_no_call_either() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let limiter = limiter(&hands, &server.url(), 5);
    set(&limiter, 1_000_000, 100_000_000);
    let catalog = limiter.catalog();
    catalog.create_entity(NewEntity::new("org")).wait().expect("it answers");
    catalog.create_entity(NewEntity::new("user").parent("org").cascades(true)).wait().expect("it answers");
    assert!(take(&limiter, 100));
    let before = calls(&server);
    for _ in 0..999 {
        assert!(take(&limiter, 100));
    }
    let calls = calls(&server) - before;
    assert!(calls < 60, "{calls} calls for 999 takes and their settlements");
    let left_of = |entity| left(&limiter, entity);
    let rest = (Some(999_000), Some(99_950_000));
    eventually("what is held is given back", || left_of("org") == rest && left_of("user") == rest);
    assert_eq!(
        (used(&limiter, "org"), used(&limiter, "user")),
        (vec![(1_000, 1_000, 50_000)], vec![(1_000, 1_000, 50_000)])
    );
}

/// What is held by one is not had by another, and comes back.
#[test]
fn two_processes_never_hand_out_more_than_there_is() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let clients = [20, 20, 0].map(|percent| limiter(&hands, &server.url(), percent));
    set(&clients[0], 1_000, 1_000_000);
    clients[1].catalog().invalidate();
    let mut admitted = 0;
    for round in 0..1_500 {
        admitted += u64::from(take(&clients[round % 3], 10));
        assert!(admitted <= 1_000, "one more than there was");
    }
    // What is still held ahead is given back when it was idle, and then it is had.
    eventually("what is held is given back", || {
        while take(&clients[2], 10) {
            admitted += 1;
        }
        admitted == 1_000
    });
}

#[test]
fn what_nobody_wants_is_given_back_and_usage_is_exact() {
    for kind in ServerKind::ALL {
        let (hands, server) = (ManualClock::at(START), Server::start(kind));
        let limiter = limiter(&hands, &server.url(), 50);
        set(&limiter, 1_000, 100_000);
        for _ in 0..300 {
            assert!(take(&limiter, 100));
        }
        eventually("what is held is given back", || left(&limiter, "user") == (Some(700), Some(85_000)));
        assert_eq!(used(&limiter, "user"), [(300, 300, 15_000)]);
    }
}

/// A caller that asks for the usage gets all of it, whether what is held was given back or not.
#[test]
fn usage_is_told_at_once() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let limiter = limiter(&hands, &server.url(), 50);
    set(&limiter, 1_000, 100_000);
    for count in 1..=50 {
        assert!(take(&limiter, 100));
        assert_eq!(used(&limiter, "user"), [(count, count as i64, 50 * count as i64)]);
    }
}

#[test]
fn changed_limits_and_a_reset_are_heeded_at_once() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let limiter = limiter(&hands, &server.url(), 50);
    set(&limiter, 1_000, 100_000);
    for _ in 0..100 {
        assert!(take(&limiter, 100));
    }
    set(&limiter, 10, 100_000);
    let admitted = (0..100).filter(|_| take(&limiter, 10)).count();
    assert!(admitted <= 10, "{admitted} of 10");
    limiter.catalog().reset("user", "gpt-4", None).wait().expect("it answers");
    assert_eq!((0..100).filter(|_| take(&limiter, 10)).count(), 10);
}

#[test]
fn nothing_that_was_held_before_a_reset_is_had_after_it() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let limiter = limiter(&hands, &server.url(), 50);
    set(&limiter, 1_000, 100_000);
    for _ in 0..30 {
        assert!(take(&limiter, 10));
    }
    limiter.catalog().reset("user", "gpt-4", None).wait().expect("it answers");
    assert_eq!((0..1_500).filter(|_| take(&limiter, 10)).count(), 1_000);
}

/// A bucket that is forgotten takes along what is held of it.
#[test]
fn what_is_held_of_a_bucket_that_is_forgotten_is_not_handed_out() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let store = builder(&hands, &server.url(), 50).build().wait().expect("the server is there");
    let limiter = Limiter::open(Arc::new(store.clone()), "default").wait().expect("it answers");
    set(&limiter, 1_000, 1_000_000);
    for _ in 0..50 {
        assert!(take(&limiter, 10));
    }
    let namespace = limiter.catalog().namespace_id().to_owned();
    assert_eq!(store.forget(&namespace, Scope::All).wait().expect("it answers"), 1);
    assert_eq!((0..1_500).filter(|_| take(&limiter, 10)).count(), 1_000);
}

/// Answers that are lost leave no caller with more than there is, and nothing is counted twice.
#[test]
fn answers_that_are_lost_charge_nothing_twice() {
    for kind in ServerKind::ALL {
        let (hands, server) = (ManualClock::at(START), Server::start(kind));
        let proxy = Proxy::to(server.port());
        let limiter = limiter(&hands, &proxy.url(), 2);
        set(&limiter, 10_000, 1_000_000);
        assert!(take(&limiter, 100));
        proxy.set(ProxyFault::LoseEvery(3));
        for _ in 0..499 {
            assert!(take(&limiter, 100));
        }
        proxy.set(ProxyFault::None);
        eventually("what is held is given back", || left(&limiter, "user") == (Some(9_500), Some(975_000)));
        assert_eq!(used(&limiter, "user"), [(500, 500, 25_000)]);
    }
}

/// A portion that was taken, and whose answer never came, is found out about and given back.
#[test]
fn a_portion_that_nobody_heard_of_is_given_back() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let proxy = Proxy::to(server.port());
    let store = builder(&hands, &proxy.url(), 50).timeout(Duration::from_secs(2)).build().wait();
    let store = store.expect("the server is there");
    let limiter = Limiter::open(Arc::new(store.clone()), "default").wait().expect("it answers");
    let limits = [Limit::per_hour("rpm", 1_000), Limit::per_hour("tpm", 100_000)];
    let limits = Limits::new(limits).expect("they are valid");
    let (namespace, key) = (limiter.catalog().namespace_id(), Key::new(&["user", "gpt-4"]));
    let costs = limits.costs(&demand! { rpm: 1, tpm: 100 }).expect("it fits");
    let place = BucketRef { namespace, key: &key, limits: &limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let take = || match store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait() {
        Ok(TxnOutcome::Done(_)) => true,
        Ok(other) => panic!("a take came to {other:?}"),
        Err(StoreError::Unavailable(..)) => false,
        Err(error) => panic!("a take failed: {error}"),
    };
    assert!(take());
    let mut taken = 1;
    for _ in 0..3 {
        proxy.set(ProxyFault::LoseEvery(1));
        // What is held is served meanwhile; then there is no answer.
        while take() {
            taken += 1;
        }
        proxy.set(ProxyFault::None);
        assert!(take());
        taken += 1;
    }
    let rest = || store.peek(&place).wait().expect("it answers");
    eventually("what is held is given back", || {
        let rest: Vec<i64> = rest().iter().map(|status| status.available()).collect();
        rest == [1_000 - taken, 100_000 - 100 * taken]
    });
    assert_eq!(used(&limiter, "user"), [(taken as u64, taken, 100 * taken)]);
}

/// A call that is asked for again is answered the same, also if no server knows of it.
#[test]
fn a_call_is_served_once_however_often_it_is_asked() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let store = builder(&hands, &server.url(), 50).build().wait().expect("the server is there");
    let limits = Limits::new([Limit::per_hour("rpm", 1_000)]).expect("it is valid");
    let (key, costs) = (Key::new(&["me", "gpt"]), limits.costs(&demand! { rpm: 1 }).expect("it fits"));
    let place = BucketRef { namespace: "ns", key: &key, limits: &limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    for number in 0..100 {
        let call = Transaction { id: Some(OpId(number)), steps: &steps, metered: true };
        let first = store.apply(&call).wait().expect("it answers");
        assert!(matches!(first, TxnOutcome::Done(_)));
        assert_eq!(store.apply(&call).wait().expect("it answers"), first);
    }
    let rest = || store.peek(&place).wait().expect("it answers")[0].available();
    eventually("what is held is given back", || rest() == 900);
}

#[test]
fn the_bound_is_told() {
    let (hands, server) = (ManualClock::at(START), Server::start(ServerKind::Redis));
    let store = builder(&hands, &server.url(), 5).build().wait().expect("the server is there");
    let meters =
        Limits::new([Limit::per_hour("rpm", 1_000), Limit::per_hour("tpm", 30)]).expect("they are valid");
    assert_eq!(store.prefetch_bounds(&meters), Some(vec![50, 1]));
    let slots = Limits::new([Limit::resource("slots", 1_000)]).expect("it is valid");
    assert_eq!(store.prefetch_bounds(&slots), None);
    let told = RedisStore::builder(format!("{}?prefetch=10", server.url())).build().wait();
    assert_eq!(told.expect("the server is there").prefetch_bounds(&meters), Some(vec![100, 3]));
    let plain = RedisStore::builder(server.url()).build().wait().expect("the server is there");
    assert_eq!(plain.prefetch_bounds(&meters), None);
}
