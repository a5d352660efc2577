//! Waiting for admission.

use std::task::Poll;
use std::time::Duration;

use tollgate::{AcquireError, LimitSet};
use tollgate_core::{Limit, Span, demand};
use tollgate_store::{Clock, Priority};

use super::fixture::{WaitingTask, available, denial, queued, spend, take};
use super::{OpenSetStore, SetFixture};
use crate::fixture::UNEVEN_START;
use crate::poll::{eventually, until};

const SECOND: Duration = Duration::from_secs(1);

/// A head that takes longer may be overtaken: a little less than the wait queue allows, which reads the clock later.
const REACTION: Span = Span::from_millis(700);

/// How often this thread may be too slow.
const TRIES: usize = 50;

/// Each is admitted in the order of arrival, at the microsecond at which its demand fits.
pub fn waiters_are_admitted_in_order_at_their_exact_instants(open: OpenSetStore<'_>) {
    let is_in_time = (0..TRIES).any(|_| are_admitted_in_order(open));
    assert!(is_in_time, "this thread polled a head too late each time");
}

/// Returns false if a head was polled so late that a waiter behind overtook it.
fn are_admitted_in_order(open: OpenSetStore<'_>) -> bool {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 60)]);
    spend(&set, demand! { rpm: 60 });
    let mut waiting: Vec<_> = (0..8).map(|_| fixture.wait_for(&set, demand! { rpm: 1 })).collect();
    for (index, second) in (1..=8_u64).enumerate() {
        // Moving the clock notifies the head, which is expected to react from then on.
        let since = Clock::system().now();
        fixture.clock.set(UNEVEN_START + Span::from_micros(second * 1_000_000 - 1));
        waiting[index..].iter_mut().for_each(WaitingTask::still_waits);
        fixture.clock.set(UNEVEN_START + Span::from_secs(second));
        // The waiters behind are polled first, and stay behind. A waiter that overtakes a late head may get its lease only
        // later, so they are polled for as long as the head waits.
        let (first, behind) = waiting[index..].split_first_mut().expect("there are as many as seconds");
        let lease = eventually(|| match behind.iter_mut().any(|later| later.poll().is_ready()) {
            true => Some(None),
            false => match first.poll() {
                Poll::Ready(answer) => Some(Some(answer)),
                Poll::Pending => None,
            },
        });
        let Some(lease) = lease else {
            assert!(Clock::system().now().since(since) >= REACTION, "the head was not late");
            return false;
        };
        assert_eq!(lease.expect("its turn has come").waited(), Some(Duration::from_secs(second)));
    }
    drop(waiting);
    assert_eq!(queued(&set), 0);
    true
}

/// No caller sleeps through a wait that is longer than its timeout.
pub fn a_wait_that_cannot_fit_fails_at_once(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 60)]);
    spend(&set, demand! { rpm: 60 });
    for early in [
        set.acquire(demand! { rpm: 10 }).timeout(Duration::from_millis(9_999)),
        set.acquire(demand! { rpm: 10 }).timeout(Duration::from_micros(9_999_999)),
        set.acquire(demand! { rpm: 10 }).timeout(Duration::ZERO),
    ] {
        let error = early.wait().expect_err("ten take ten seconds");
        let AcquireError::TimedOut { denial, waited } = error else { panic!("{error}") };
        assert_eq!((denial.wait(), waited), (Some(10 * SECOND), Duration::ZERO));
    }
    let mut just =
        fixture.begin(std::slice::from_ref(&set), set.acquire(demand! { rpm: 10 }).timeout(10 * SECOND));
    fixture.advance_ms(10_000);
    assert!(just.answer().is_ok());
}

/// A demand that could not be met in time even at the head need not wait.
pub fn a_wait_behind_others_that_cannot_fit_fails_at_once(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 60)]);
    spend(&set, demand! { rpm: 60 });
    let _first = fixture.wait_for(&set, demand! { rpm: 5 });
    let error = set.acquire(demand! { rpm: 20 }).timeout(19 * SECOND).wait().expect_err("it is too late");
    let AcquireError::TimedOut { denial, waited } = error else { panic!("{error}") };
    assert!(denial.wait() >= Some(20 * SECOND), "{denial}");
    assert_eq!((waited, queued(&set)), (Duration::ZERO, 1));
}

/// A holder may release the resource at any time, so only the deadline ends the wait.
pub fn a_wait_for_a_resource_ends_at_its_deadline_and_takes_nothing(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 5), Limit::resource("slots", 1)]);
    let held = take(&set, demand! { rpm: 1 }).expect("it fits");
    let mut waiting =
        fixture.begin(std::slice::from_ref(&set), set.acquire(demand! { rpm: 1 }).timeout(3 * SECOND));
    fixture.advance_ms(2_999);
    waiting.still_waits();
    fixture.advance_ms(1);
    let error = waiting.answer().map(drop).expect_err("its time is over");
    let AcquireError::TimedOut { waited, .. } = error else { panic!("{error}") };
    assert_eq!(waited, 3 * SECOND);
    drop((waiting, held));
    until(|| available(&set, "slots") == 1);
    assert_eq!((available(&set, "rpm"), queued(&set)), (4, 0));
}

/// There is no polling interval in between.
pub fn a_refund_or_a_release_lets_the_head_pass_at_once(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_hour("tph", 100), Limit::resource("slots", 1)]);
    let holder = take(&set, demand! { tph: 100 }).expect("it fits");
    let mut waiting = fixture.wait_for(&set, demand! { tph: 40 });
    holder.settle(demand! { tph: 60 }).wait().expect("the report is valid");
    let lease = waiting.answer().expect("there are 40 again");
    assert_eq!(lease.waited(), Some(Duration::ZERO));
    let mut next = fixture.wait_for(&set, demand! { tph: 0 });
    drop(lease);
    assert!(next.answer().is_ok());
}

/// Not even a demand that would fit overtakes.
pub fn no_waiter_is_overtaken_and_a_large_demand_is_not_starved(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_second("rps", 1).burst(100)]);
    spend(&set, demand! { rps: 100 });
    let mut large = fixture.wait_for(&set, demand! { rps: 50 });
    let mut small: Vec<_> = (0..20).map(|_| fixture.wait_for(&set, demand! { rps: 1 })).collect();
    // Half a second at a time: a waiter that is not polled for longer is overtaken.
    for _ in 0..99 {
        fixture.advance_ms(500);
        large.still_waits();
    }
    fixture.advance_ms(499);
    assert_eq!(denial(&set, demand! { rps: 1 }).limited_by(), None, "others are ahead");
    large.still_waits();
    fixture.advance_ms(1);
    assert_eq!(large.answer().expect("its turn has come").waited(), Some(50 * SECOND));
    fixture.advance_ms(20_000);
    assert!(small.iter_mut().all(|waiting| waiting.answer().is_ok()));
}

/// Interactive waiters are admitted before batch.
pub fn the_higher_priority_goes_first(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 1)]);
    spend(&set, demand! { rpm: 1 });
    let wait = |priority| {
        fixture.begin(std::slice::from_ref(&set), set.acquire(demand! { rpm: 1 }).priority(priority))
    };
    let mut batch = wait(Priority::Batch);
    let mut normal = wait(Priority::Normal);
    let mut interactive = wait(Priority::Interactive);
    for (minute, waiting) in [&mut interactive, &mut normal, &mut batch].into_iter().enumerate() {
        fixture.clock.set(UNEVEN_START + Span::from_secs(60 * (minute as u64 + 1)));
        assert!(waiting.answer().is_ok(), "in minute {minute}");
    }
}

/// Nothing stays taken or held, and the next waiter is considered.
pub fn a_wait_dropped_after_any_number_of_polls_leaves_nothing(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_second("rps", 1), Limit::resource("slots", 2)]);
    let is_as_before = || available(&set, "slots") == 2 && available(&set, "rps") == 1;
    for polls in 0..12 {
        drop_after(polls, &set);
        // A call in flight is cancelled, or refunded.
        until(is_as_before);
        assert_eq!(queued(&set), 0, "{polls} polls");
        // The same for a waiter, with another behind it.
        spend(&set, demand! { rps: 1 });
        let mut first = fixture.wait_for(&set, demand! { rps: 1 });
        let mut next = fixture.wait_for(&set, demand! { rps: 1 });
        (0..polls).for_each(|_| assert!(first.poll().is_pending()));
        drop(first);
        fixture.advance_ms(1_000);
        next.answer().expect("it is first now").settle(demand! { rps: 1 }).wait().expect("it is valid");
        fixture.advance_ms(1_000);
        until(is_as_before);
    }
}

/// Polls an acquire that fits so often, and drops it, or cancels the lease that it got.
fn drop_after(polls: usize, set: &LimitSet) {
    let mut waiting = Box::pin(set.acquire(demand! { rps: 1 }).into_future());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(lease) = waiting.as_mut().poll(&mut context) {
            let lease = lease.expect("it is admitted");
            return lease.cancel().wait().expect("the store answers");
        }
        std::thread::yield_now();
    }
}

/// The bound is `waiters_max`.
pub fn waiters_beyond_the_bound_are_refused(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let builder = fixture.builder("law", [Limit::per_minute("rpm", 1)]).waiters_max(2);
    let set = builder.build().expect("it is valid");
    spend(&set, demand! { rpm: 1 });
    let mut waits = [fixture.wait_for(&set, demand! { rpm: 1 }), fixture.wait_for(&set, demand! { rpm: 1 })];
    let error = set.acquire(demand! { rpm: 1 }).wait().expect_err("two wait");
    assert_eq!(error, AcquireError::QueueFull(tollgate_store::QueueFull { waiting: 2, max: 2 }));
    fixture.advance_ms(60_000);
    assert!(waits[0].answer().is_ok());
}

/// A budget that is spent for the day holds back only demands for it.
pub fn a_waiter_holds_back_no_demand_for_other_limits(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_day("budget", 1), Limit::per_second("rps", 1_000)]);
    spend(&set, demand! { budget: 1 });
    let mut waiting = fixture.wait_for(&set, demand! { budget: 1, rps: 1 });
    for _ in 0..1_000 {
        spend(&set, demand! { rps: 1 });
    }
    let denied = denial(&set, demand! { rps: 1 });
    assert_eq!(denied.wait(), Some(Duration::from_millis(1)), "the rate denies it, and no waiter");
    waiting.still_waits();
    assert!(denial(&set, demand! { budget: 1 }).wait() > Some(23 * 3_600 * SECOND));
}

/// A waiter that is polled once and then left, as in a busy `select!`, holds others back for a second.
pub fn a_waiter_that_is_not_polled_holds_no_caller_back_for_long(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_second("rps", 2)]);
    spend(&set, demand! { rps: 2 });
    let left = fixture.wait_for(&set, demand! { rps: 1 });
    fixture.advance_ms(2_000);
    // Its time to react is measured by the system clock, for which this waits.
    until(|| take(&set, demand! { rps: 1 }).is_some());
    for _ in 0..4 {
        fixture.advance_ms(1_000);
        spend(&set, demand! { rps: 1 });
    }
    drop(left);
    assert_eq!(queued(&set), 0);
}

/// The resource goes to the next waiter, and is not lost.
pub fn a_waiter_that_is_not_polled_keeps_no_resource(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::resource("slots", 1)]);
    let held = take(&set, demand! { slots: 1 }).expect("it is free");
    let mut left = fixture.wait_for(&set, demand! { slots: 1 });
    let mut next = fixture.wait_for(&set, demand! { slots: 1 });
    drop(held);
    // The time to react is measured by the system clock, or by that of the server where the store has one.
    fixture.advance_ms(2_000);
    let lease = next.answer().expect("the waiter ahead of it does not react");
    left.still_waits();
    assert_eq!(queued(&set), 1, "a waiter that was passed waits again");
    drop(lease);
    let lease = left.answer().expect("it reacts now");
    drop(lease);
    drop((left, next));
    until(|| available(&set, "slots") == 1);
    assert_eq!(queued(&set), 0);
}

/// It keeps the resource neither from a caller that does not wait, nor from the waiter itself.
pub fn a_grant_that_is_not_collected_goes_to_a_newcomer(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::resource("slots", 1)]);
    let held = take(&set, demand! { slots: 1 }).expect("it is free");
    let mut left = fixture.wait_for(&set, demand! { slots: 1 });
    drop(held);
    fixture.advance_ms(2_000);
    until(|| take(&set, demand! { slots: 1 }).is_some());
    let lease = left.answer().expect("the newcomer is done");
    drop(lease);
    until(|| available(&set, "slots") == 1);
    assert_eq!(queued(&set), 0);
}
