//! Waiting for admission.

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

/// Begins to wait for `amount`, and polls until there is nothing to do but wait: a store may take a moment to deny it.
fn wait_for<'a>(fixture: &'a LimiterFixture, entity: &'a str, amount: u64) -> PendingWait<'a> {
    let mut queue = Vec::new();
    wait_behind(fixture, &mut queue, entity, amount);
    queue.remove(0)
}

/// Does the same behind other waiters. They are polled, too: any of them may be notified.
fn wait_behind<'a>(
    fixture: &'a LimiterFixture,
    queue: &mut Vec<PendingWait<'a>>,
    entity: &'a str,
    amount: u64,
) {
    let before = fixture.limiter.waiting();
    queue.push(fixture.limiter.acquire(entity, RESOURCE, demand! { rpm: amount }).into_future());
    while fixture.limiter.waiting() == before || fixture.backend.wait_queues().is_busy() {
        queue.iter_mut().for_each(|waiting| assert!(poll(waiting).is_pending(), "it does not fit"));
        thread::yield_now();
    }
}

/// Returns the lease of a waiter that must be admitted now.
fn granted<'a>(waiting: PendingWait<'a>) -> LimiterLease<'a> {
    block_on(waiting).expect("it is admitted")
}

/// Each is admitted in the order of arrival, at the microsecond at which its demand fits.
pub fn waiters_are_admitted_in_order_at_their_exact_instants(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.spend("user", demand! { rpm: 60 });
    let order = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..5 {
            let waits = fixture.limiter.waiting();
            let (fixture, order) = (&fixture, &order);
            scope.spawn(move || {
                let lease = fixture.limiter.acquire("user", RESOURCE, demand! { rpm: 1 }).wait();
                let lease = lease.expect("it is admitted in time");
                order.lock().expect("no thread panics").push((number, lease.waited().expect("it waited")));
                lease.commit().wait().expect("the store answers");
            });
            until(|| fixture.limiter.waiting() != waits);
        }
        for second in 1..=5 {
            // The next waiter has asked the store: a waiter that does not react while the clock moves is overtaken.
            let is_done = || fixture.limiter.waiting() == 5 - (second - 1);
            until(|| is_done() && !fixture.backend.wait_queues().is_busy());
            fixture.clock.set(UNEVEN_START + Span::from_micros(second as u64 * 1_000_000 - 1));
            yield_to_others();
            assert!(is_done(), "a microsecond too early");
            fixture.clock.set(UNEVEN_START + Span::from_secs(second as u64));
            until(|| order.lock().expect("no thread panics").len() >= second);
        }
    });
    let expected: Vec<_> = (0..5).map(|number| (number, Duration::from_secs(number + 1))).collect();
    assert_eq!(order.into_inner().expect("no thread panics"), expected);
}

/// Yields to other threads, so that one could be admitted too early.
fn yield_to_others() {
    (0..20).for_each(|_| thread::yield_now());
}

/// No caller sleeps through a wait that is longer than its timeout.
pub fn a_wait_that_cannot_fit_fails_at_once(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.spend("user", demand! { rpm: 60 });
    let wait = |amount: u64, timeout| {
        fixture.limiter.acquire("user", RESOURCE, demand! { rpm: amount }).timeout(timeout).wait()
    };
    let error = wait(10, Duration::from_millis(9_999)).expect_err("ten take ten seconds");
    let LimiterError::TimedOut { status, waited } = error else { panic!("{error}") };
    assert_eq!((status.retry_after(), waited), (Some(Duration::from_secs(10)), Duration::ZERO));
    assert!(matches!(wait(61, Duration::from_secs(100)), Err(LimiterError::Demand { .. })));
    assert_eq!(fixture.limiter.waiting(), 0);
}

/// A demand that could not be met in time even at the head need not wait.
pub fn a_wait_behind_others_that_cannot_fit_fails_at_once(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.spend("user", demand! { rpm: 60 });
    let _first = wait_for(&fixture, "user", 5);
    let wait = fixture.limiter.acquire("user", RESOURCE, demand! { rpm: 20 });
    let error = wait.timeout(Duration::from_secs(19)).wait().expect_err("it is too late");
    let LimiterError::TimedOut { status, waited } = error else { panic!("{error}") };
    assert!(status.retry_after() >= Some(Duration::from_secs(20)), "{status}");
    assert_eq!((waited, fixture.limiter.waiting()), (Duration::ZERO, 1));
}

/// A lease that consumes more is behind callers that wait.
pub fn consume_overtakes_no_waiter(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    let mut lease = fixture.take("user", demand! { rpm: 10 }).expect("there is room");
    lease.consume(demand! { rpm: 10 }).wait().expect("there is room");
    let waiting = wait_for(&fixture, "user", 60);
    let denied = lease.consume(demand! { rpm: 10 }).wait().expect_err("another waits for all of it");
    assert!(matches!(denied, LimiterError::Denied(_)), "{denied}");
    drop(waiting);
    lease.consume(demand! { rpm: 10 }).wait().expect("there is room, and no waiter");
}

/// A holder may release a resource before it expires.
pub fn a_wait_for_a_held_resource_can_succeed(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::with(open, |builder| builder.lease_ttl(Duration::from_secs(60)));
    fixture.set(Level::System, [Limit::resource("rpm", 1)]);
    let held = fixture.take("user", demand! {}).expect("there is room");
    let call = fixture.limiter.acquire("user", RESOURCE, demand! {}).timeout(Duration::from_secs(5));
    let mut waiting = call.into_future();
    while fixture.limiter.waiting() == 0 {
        assert!(poll(&mut waiting).is_pending(), "it was denied at once");
    }
    drop(held);
    drop(granted(waiting));
}

/// A released resource goes to the first waiter, with no polling interval in between.
pub fn a_release_wakes_the_next_at_once(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::System, [Limit::resource("rpm", 1)]);
    for _ in 0..20 {
        let held = fixture.take("user", demand! {}).expect("there is room");
        let waiting = wait_for(&fixture, "user", 1);
        drop(held);
        drop(granted(waiting));
    }
    assert_eq!((fixture.available("user", "rpm"), fixture.limiter.waiting()), (1, 0));
}

/// A child that has used up its own limit does not keep its siblings from the parent.
pub fn a_waiter_of_one_child_does_not_block_its_siblings(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    ["a", "b"].iter().for_each(|child| fixture.create(child, Some("parent")));
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.set(Level::Entity("parent"), [Limit::per_minute("rpm", 600)]);
    fixture.spend("a", demand! { rpm: 60 });
    let waiting = wait_for(&fixture, "a", 10);
    fixture.spend("b", demand! { rpm: 60 });
    fixture.advance_ms(10_000);
    granted(waiting).commit().wait().expect("the store answers");
    assert_eq!((fixture.available("a", "rpm"), fixture.limiter.waiting()), (0, 0));
}

/// The parent has capacity again long before the child.
pub fn a_waiter_that_was_short_of_the_parent_too_does_not_block_its_siblings(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    ["a", "b"].iter().for_each(|child| fixture.create(child, Some("parent")));
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.set(Level::Entity("a"), [Limit::per_minute("rpm", 6)]);
    fixture.spend("a", demand! { rpm: 6 });
    fixture.spend("b", demand! { rpm: 54 });
    let waiting = wait_for(&fixture, "a", 6);
    fixture.advance_ms(10_000);
    fixture.spend("b", demand! { rpm: 10 });
    fixture.advance_ms(50_000);
    granted(waiting).commit().wait().expect("the store answers");
    assert_eq!((fixture.available("a", "rpm"), fixture.limiter.waiting()), (0, 0));
}

/// A newcomer's try is denied while a waiter is queued, though it would fit.
pub fn no_newcomer_overtakes_a_waiter(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.spend("user", demand! { rpm: 60 });
    let mut waiting = wait_for(&fixture, "user", 30);
    fixture.advance_ms(10_000);
    // A waiter that does not react is overtaken.
    while fixture.backend.wait_queues().is_busy() {
        assert!(poll(&mut waiting).is_pending(), "it does not fit");
        thread::yield_now();
    }
    let refusal = fixture.refusal("user", demand! { rpm: 1 });
    assert!(refusal.limited_by().is_none(), "10 are there, but another waits for them: {refusal}");
    assert!(
        !fixture
            .limiter
            .check_availability("user", RESOURCE, demand! { rpm: 1 })
            .wait()
            .expect("valid")
            .passes()
    );
    fixture.advance_ms(20_000);
    granted(waiting).commit().wait().expect("the store answers");
    fixture.advance_ms(1_000);
    fixture.spend("user", demand! { rpm: 1 });
}

pub fn waiters_learn_of_raised_limits(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.spend("user", demand! { rpm: 60 });
    let mut waiting = wait_for(&fixture, "user", 30);
    fixture.set(Level::System, [Limit::per_minute("rpm", 6_000)]);
    while !is_under(&fixture, "user", 6_000) {
        assert!(poll(&mut waiting).is_pending(), "raising mints nothing");
    }
    fixture.advance_ms(300);
    granted(waiting).commit().wait().expect("the store answers");
}

/// Returns whether the bucket is under limits of this capacity.
fn is_under(fixture: &LimiterFixture, entity: &str, capacity: u64) -> bool {
    let scope = Scope::Entity(entity);
    let page = fixture.backend.buckets(fixture.catalog().namespace_id(), scope, None, 10).wait();
    let buckets = page.expect("the store answers").items;
    buckets.iter().flat_map(|bucket| &bucket.limits).all(|status| status.limit().capacity() == capacity)
}

pub fn cancelled_waiters_leave_no_trace(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::resource("rpm", 1)]);
    let held = fixture.take("user", demand! {}).expect("there is room");
    for _ in 0..20 {
        drop(wait_for(&fixture, "user", 1));
    }
    assert_eq!(fixture.limiter.waiting(), 0);
    let mut queue = Vec::new();
    (0..2).for_each(|_| wait_behind(&fixture, &mut queue, "user", 1));
    drop(held);
    drop(queue.remove(0));
    drop(granted(queue.remove(0)));
    assert_eq!((fixture.available("user", "rpm"), fixture.limiter.waiting()), (1, 0));
}

/// It is admitted when it is at the head, however many small demands are behind it.
pub fn a_large_demand_is_not_starved_by_small_ones(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_minute("rpm", 60)]);
    fixture.spend("user", demand! { rpm: 60 });
    let mut queue = Vec::new();
    [30].into_iter().chain([1; 20]).for_each(|amount| wait_behind(&fixture, &mut queue, "user", amount));
    fixture.advance_ms(29_999);
    assert_eq!(fixture.limiter.waiting(), 21);
    fixture.advance_ms(1);
    granted(queue.remove(0)).commit().wait().expect("the store answers");
    for waiting in queue {
        fixture.advance_ms(1_000);
        granted(waiting).commit().wait().expect("the store answers");
    }
    assert_eq!((fixture.available("user", "rpm"), fixture.limiter.waiting()), (0, 0));
}
