//! Waiting instead of failing.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tollgate::limiter::{LimiterError, LimiterLease};
use tollgate_catalog::Level;
use tollgate_core::{Limit, Span, demand};
use tollgate_store::{Reply, Scope};

use super::LimiterFixture;
use super::fixture::RESOURCE;
use crate::OpenBackend;
use crate::fixture::UNEVEN_START;
use crate::poll::{self, block_on, until};

type PendingWait<'a> = Reply<'a, Result<LimiterLease<'a>, LimiterError>>;

fn poll<'a>(waiting: &mut PendingWait<'a>) -> Poll<Result<LimiterLease<'a>, LimiterError>> {
    poll::poll(Pin::new(waiting))
}

/// Starts to wait for `amount`, and polls until it has nothing to do but wait: a store may take a moment to deny it.
fn wait_for<'a>(bench: &'a LimiterFixture, entity: &'a str, amount: u64) -> PendingWait<'a> {
    let mut line = Vec::new();
    wait_behind(bench, &mut line, entity, amount);
    line.remove(0)
}

/// The same for one behind others. They are polled, too: any of them may be notified.
fn wait_behind<'a>(bench: &'a LimiterFixture, line: &mut Vec<PendingWait<'a>>, entity: &'a str, amount: u64) {
    let before = bench.limiter.waiting();
    line.push(bench.limiter.acquire(entity, RESOURCE, demand! { rpm: amount }).into_future());
    while bench.limiter.waiting() == before || bench.backend.wait_queues().is_busy() {
        line.iter_mut().for_each(|waiting| assert!(poll(waiting).is_pending(), "it does not fit"));
        thread::yield_now();
    }
}

/// The lease that one who waits must get now.
fn granted<'a>(waiting: PendingWait<'a>) -> LimiterLease<'a> {
    block_on(waiting).expect("it is admitted")
}

/// In the order of arrival, each at the microsecond at which it fits.
pub fn waiters_are_admitted_in_order_at_their_exact_instants(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    bench.spend("user", demand! { rpm: 60 });
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..5 {
            let waits = bench.limiter.waiting();
            let (bench, order) = (&bench, &order);
            scope.spawn(move || {
                let lease = bench.limiter.acquire("user", RESOURCE, demand! { rpm: 1 }).wait();
                let lease = lease.expect("it is admitted in time");
                order.lock().expect("nobody panics").push((number, lease.waited().expect("it waited")));
                lease.commit().wait().expect("a store that is there answers");
            });
            until(|| bench.limiter.waiting() != waits);
        }
        for second in 1..=5 {
            // The next has asked the store: one that does not react while the clock moves on is passed over.
            let is_done = || bench.limiter.waiting() == 5 - (second - 1);
            until(|| is_done() && !bench.backend.wait_queues().is_busy());
            bench.hands.set(UNEVEN_START + Span::from_micros(second as u64 * 1_000_000 - 1));
            settle_down();
            assert!(is_done(), "a microsecond too early");
            bench.hands.set(UNEVEN_START + Span::from_secs(second as u64));
            until(|| order.lock().expect("no thread panics").len() >= second);
        }
    });
    let expected: Vec<_> = (0..5).map(|number| (number, Duration::from_secs(number + 1))).collect();
    assert_eq!(order.into_inner().expect("nobody panics"), expected);
}

/// Gives other threads a chance to do what they should not.
fn settle_down() {
    (0..20).for_each(|_| thread::yield_now());
}

/// No caller sleeps through a wait that cannot fit.
pub fn a_wait_that_cannot_fit_fails_at_once(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    bench.spend("user", demand! { rpm: 60 });
    let wait = |amount: u64, timeout| {
        bench.limiter.acquire("user", RESOURCE, demand! { rpm: amount }).timeout(timeout).wait()
    };
    let error = wait(10, Duration::from_millis(9_999)).expect_err("ten take ten seconds");
    let LimiterError::TimedOut { status, waited } = error else { panic!("{error}") };
    assert_eq!((status.retry_after(), waited), (Some(Duration::from_secs(10)), Duration::ZERO));
    assert!(matches!(wait(61, Duration::from_secs(100)), Err(LimiterError::Demand { .. })));
    assert_eq!(bench.limiter.waiting(), 0);
}

/// A lease that wants more is behind callers that wait.
pub fn consume_overtakes_no_waiter(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    let mut lease = bench.take("user", demand! { rpm: 10 }).expect("there is room");
    lease.consume(demand! { rpm: 10 }).wait().expect("there is room");
    let waiting = wait_for(&bench, "user", 60);
    let denied = lease.consume(demand! { rpm: 10 }).wait().expect_err("another waits for all of it");
    assert!(matches!(denied, LimiterError::Denied(_)), "{denied}");
    drop(waiting);
    lease.consume(demand! { rpm: 10 }).wait().expect("there is room, and no waiter");
}

/// What another holds until it expires may be given back at any time, so a wait for it can succeed.
pub fn a_wait_for_a_held_resource_can_succeed(open: OpenBackend<'_>) {
    let bench = LimiterFixture::with(open, |builder| builder.lease_ttl(Duration::from_secs(60)));
    bench.set(Level::System, [Limit::resource("rpm", 1)]);
    let held = bench.take("user", demand! {}).expect("there is room");
    let call = bench.limiter.acquire("user", RESOURCE, demand! {}).timeout(Duration::from_secs(5));
    let mut waiting = call.into_future();
    while bench.limiter.waiting() == 0 {
        assert!(poll(&mut waiting).is_pending(), "it was told that it waits in vain");
    }
    drop(held);
    drop(granted(waiting));
}

/// What is given back goes to the first who waits, with no time in between.
pub fn a_release_wakes_the_next_at_once(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.create("parent", None);
    bench.create("user", Some("parent"));
    bench.set(Level::System, [Limit::resource("rpm", 1)]);
    for _ in 0..20 {
        let held = bench.take("user", demand! {}).expect("there is room");
        let waiting = wait_for(&bench, "user", 1);
        drop(held);
        drop(granted(waiting));
    }
    assert_eq!((bench.available("user", "rpm"), bench.limiter.waiting()), (1, 0));
}

/// A child that is out of its own share does not keep its siblings from the parent.
pub fn a_waiter_of_one_child_does_not_block_its_siblings(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.create("parent", None);
    ["a", "b"].iter().for_each(|child| bench.create(child, Some("parent")));
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    bench.set(Level::Entity("parent"), [Limit::per_minute("rpm", 600)]);
    bench.spend("a", demand! { rpm: 60 });
    let waiting = wait_for(&bench, "a", 10);
    bench.spend("b", demand! { rpm: 60 });
    bench.advance_ms(10_000);
    granted(waiting).commit().wait().expect("a store that is there answers");
    assert_eq!((bench.available("a", "rpm"), bench.limiter.waiting()), (0, 0));
}

/// The same, though the parent was out at first: it has capacity again long before the child.
pub fn a_waiter_that_was_short_of_the_parent_too_does_not_block_its_siblings(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.create("parent", None);
    ["a", "b"].iter().for_each(|child| bench.create(child, Some("parent")));
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    bench.set(Level::Entity("a"), [Limit::per_minute("rpm", 6)]);
    bench.spend("a", demand! { rpm: 6 });
    bench.spend("b", demand! { rpm: 54 });
    let waiting = wait_for(&bench, "a", 6);
    bench.advance_ms(10_000);
    bench.spend("b", demand! { rpm: 10 });
    bench.advance_ms(50_000);
    granted(waiting).commit().wait().expect("a store that is there answers");
    assert_eq!((bench.available("a", "rpm"), bench.limiter.waiting()), (0, 0));
}

/// A newcomer's try is denied while a waiter is queued, though it would fit.
pub fn no_newcomer_overtakes_a_waiter(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    bench.spend("user", demand! { rpm: 60 });
    let mut waiting = wait_for(&bench, "user", 30);
    bench.advance_ms(10_000);
    // One that does not react is passed.
    while bench.backend.wait_queues().is_busy() {
        assert!(poll(&mut waiting).is_pending(), "it does not fit");
        thread::yield_now();
    }
    let refusal = bench.refusal("user", demand! { rpm: 1 });
    assert!(refusal.limited_by().is_none(), "10 are there, but another waits for them: {refusal}");
    assert!(
        !bench
            .limiter
            .check_availability("user", RESOURCE, demand! { rpm: 1 })
            .wait()
            .expect("valid")
            .passes()
    );
    bench.advance_ms(20_000);
    granted(waiting).commit().wait().expect("a store that is there answers");
    bench.advance_ms(1_000);
    bench.spend("user", demand! { rpm: 1 });
}

/// A waiter learns of it when limits are raised.
pub fn waiters_learn_of_raised_limits(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    bench.spend("user", demand! { rpm: 60 });
    let mut waiting = wait_for(&bench, "user", 30);
    bench.set(Level::System, [Limit::per_minute("rpm", 6_000)]);
    while !heard_of(&bench, "user", 6_000) {
        assert!(poll(&mut waiting).is_pending(), "raising mints nothing");
    }
    bench.advance_ms(300);
    granted(waiting).commit().wait().expect("a store that is there answers");
}

/// Whether the bucket itself has come under limits of this capacity.
fn heard_of(bench: &LimiterFixture, entity: &str, capacity: u64) -> bool {
    let scope = Scope::Entity(entity);
    let page = bench.backend.buckets(bench.catalog().namespace_id(), scope, None, 10).wait();
    let buckets = page.expect("a store that is there answers").items;
    buckets.iter().flat_map(|bucket| &bucket.limits).all(|status| status.limit().capacity() == capacity)
}

/// A waiter that gives up is not missed.
pub fn cancelled_waiters_leave_no_trace(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::resource("rpm", 1)]);
    let held = bench.take("user", demand! {}).expect("there is room");
    for _ in 0..20 {
        drop(wait_for(&bench, "user", 1));
    }
    assert_eq!(bench.limiter.waiting(), 0);
    let mut line = Vec::new();
    (0..2).for_each(|_| wait_behind(&bench, &mut line, "user", 1));
    drop(held);
    drop(line.remove(0));
    drop(granted(line.remove(0)));
    assert_eq!((bench.available("user", "rpm"), bench.limiter.waiting()), (1, 0));
}

/// One who wants much goes when it is its turn, however many want little behind it.
pub fn a_large_demand_is_not_starved_by_small_ones(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::per_minute("rpm", 60)]);
    bench.spend("user", demand! { rpm: 60 });
    let mut line = Vec::new();
    [30].into_iter().chain([1; 20]).for_each(|amount| wait_behind(&bench, &mut line, "user", amount));
    bench.advance_ms(29_999);
    assert_eq!(bench.limiter.waiting(), 21);
    bench.advance_ms(1);
    granted(line.remove(0)).commit().wait().expect("a store that is there answers");
    for waiting in line {
        bench.advance_ms(1_000);
        granted(waiting).commit().wait().expect("a store that is there answers");
    }
    assert_eq!((bench.available("user", "rpm"), bench.limiter.waiting()), (0, 0));
}
