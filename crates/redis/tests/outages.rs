//! While the server is away the policy holds, within the timeout, and everything is well again once it is back.

mod common;

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Attempt, Level, Limit, Limiter, Limits, OnUnavailable, demand};
use tollgate_core::Tick;
use tollgate_redis_local::{Proxy, ProxyFault, Server, ServerKind};
use tollgate_store::Clock;

const TIMEOUT: Duration = Duration::from_millis(600);

/// No caller waits longer than this for an answer: the timeout, and what a very busy host adds. The faults last longer.
const WAITED_MAX: Duration = Duration::from_secs(30);

/// How often it is tried until all is well again.
const TRIES: usize = 200;

/// What happens to the server, and how it ends.
type Blow = (&'static str, fn(&mut Server, &Proxy), fn(&mut Server, &Proxy));

const BLOWS: [Blow; 7] = [
    ("killed", |server, _| server.kill(), |server, _| server.restart()),
    ("stopped", |server, _| server.suspend(), |server, _| server.resume()),
    (
        "paused",
        |server, _| drop(server.command(&["CLIENT", "PAUSE", "100000", "WRITE"])),
        |server, _| drop(server.command(&["CLIENT", "UNPAUSE"])),
    ),
    ("refusing", |_, proxy| proxy.set(ProxyFault::Refuse), |_, proxy| proxy.set(ProxyFault::None)),
    ("a black hole", |_, proxy| proxy.set(ProxyFault::BlackHole), |_, proxy| proxy.set(ProxyFault::None)),
    (
        "slow",
        |_, proxy| proxy.set(ProxyFault::Delay(Duration::from_secs(2))),
        |_, proxy| proxy.set(ProxyFault::None),
    ),
    ("talking nonsense", |_, proxy| proxy.set(ProxyFault::Garbage), |_, proxy| proxy.set(ProxyFault::None)),
];

fn limiter(proxy: &Proxy, policy: OnUnavailable) -> Limiter {
    let open = || {
        let store = common::builder(&proxy.url()).timeout(TIMEOUT).build().wait().ok()?;
        Limiter::open(Arc::new(store), "default").wait().ok()
    };
    let limiter = at_last("the server is there", open);
    Limiter::builder(limiter.catalog().clone()).on_unavailable(policy).store_timeout(TIMEOUT).build()
}

/// What comes of it when it is tried until it works: a host that is busy for a moment is no outage.
fn at_last<T>(what: &str, tried: impl FnMut() -> Option<T>) -> T {
    std::iter::repeat_with(tried).take(TRIES).flatten().next().unwrap_or_else(|| panic!("not so: {what}"))
}

/// That limits can be set, taken and given back.
fn served(name: &str, limiter: &Limiter, limits: &Limits) {
    at_last(name, || limiter.catalog().set_limits(Level::System, limits).wait().ok());
    at_last(name, || {
        let lease = limiter.try_acquire("me", "jobs", demand! { rpm: 1 }).wait().ok()?.admitted()?;
        lease.commit().wait().ok()
    });
}

fn since(start: Tick) -> Duration {
    Clock::system().now().since(start).to_duration()
}

fn outage((name, strike, heal): Blow) {
    let mut server = Server::with(ServerKind::Redis, &["--save", "", "--appendonly", "yes"]);
    let proxy = Proxy::to(server.port());
    let limits = Limits::new([Limit::per_minute("rpm", 1_000), Limit::resource("slots", 100)]);
    let limits = limits.expect("they are valid");
    let policies = [OnUnavailable::Block, OnUnavailable::Allow, OnUnavailable::Local];
    let limiters = policies.map(|policy| limiter(&proxy, policy));
    for limiter in &limiters {
        served(&format!("{name}: it serves before"), limiter, &limits);
    }
    strike(&mut server, &proxy);
    for (limiter, policy) in limiters.iter().zip(policies) {
        for _ in 0..2 {
            let start = Clock::system().now();
            let came = limiter.try_acquire("me", "jobs", demand! { rpm: 1 }).wait();
            let waited = since(start);
            assert!(waited < WAITED_MAX, "{name}, {policy:?}: {waited:?}");
            match came {
                Ok(Attempt::Admitted(lease)) if policy != OnUnavailable::Block => drop(lease),
                Err(error) if policy == OnUnavailable::Block => {
                    assert!(error.is_unavailable(), "{name}: {error}")
                }
                Ok(other) => panic!("{name}, {policy:?}: {other:?}"),
                Err(error) => panic!("{name}, {policy:?}: {error}"),
            }
        }
    }
    heal(&mut server, &proxy);
    for (limiter, policy) in limiters.iter().zip(policies) {
        served(&format!("{name}, {policy:?}: it comes back by itself"), limiter, &limits);
    }
}

#[test]
fn a_server_that_is_killed() {
    outage(BLOWS[0]);
}

#[test]
fn a_server_that_is_stopped() {
    outage(BLOWS[1]);
}

#[test]
fn a_server_that_is_paused() {
    outage(BLOWS[2]);
}

#[test]
fn a_server_that_refuses() {
    outage(BLOWS[3]);
}

#[test]
fn a_server_behind_a_black_hole() {
    outage(BLOWS[4]);
}

#[test]
fn a_server_that_is_slow() {
    outage(BLOWS[5]);
}

#[test]
fn a_server_that_talks_nonsense() {
    outage(BLOWS[6]);
}
