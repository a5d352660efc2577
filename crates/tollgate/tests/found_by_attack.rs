//! What an attack on the library found, each with the test that failed before it was mended.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tollgate::{
    Attempt, Checker, Event, Limit, LimitPool, LimitSet, Limits, ManualClock, Memory, Span, Tick, demand,
};

#[test]
fn limits_of_other_names_on_the_same_key_do_not_make_a_check_forget() {
    let checker = Checker::new();
    let requests = Limits::new([Limit::per_day("rpm", 5)]).unwrap();
    let tokens = Limits::new([Limit::per_day("tpm", 5)]).unwrap();
    let both = Limits::new([Limit::per_day("tpm", 5), Limit::per_day("rpm", 5)]).unwrap();
    let mut admitted = (0, 0);
    for _ in 0..20 {
        let rpm = checker.try_acquire("k", "op", &demand! { rpm: 1 }, &requests).wait().unwrap();
        let tpm = checker.try_acquire("k", "op", &demand! { tpm: 1 }, &tokens).wait().unwrap();
        admitted.0 += u32::from(rpm.is_admitted());
        admitted.1 += u32::from(tpm.is_admitted());
    }
    assert_eq!(admitted, (5, 5));
    assert!(!checker.try_acquire("k", "op", &demand! { rpm: 1 }, &both).wait().unwrap().is_admitted());
}

#[test]
fn a_wait_with_limits_of_its_own_is_charged_to_these() {
    let hands = ManualClock::at(Tick::from_secs(1_000));
    let checker = Checker::in_memory(&Memory::builder().clock(hands.clock()).build(), "");
    let tokens = Limits::new([Limit::per_second("tpm", 5)]).unwrap();
    let requests = Limits::new([Limit::per_second("rpm", 1)]).unwrap();
    assert!(checker.try_acquire("k", "op", &demand! { tpm: 5 }, &tokens).wait().unwrap().is_admitted());
    checker.acquire("k", "op", &demand! { rpm: 1 }, &requests).wait().unwrap();
    hands.advance(Span::from_millis(400));
    assert!(checker.try_acquire("k", "op", &demand! { tpm: 2 }, &tokens).wait().unwrap().is_admitted());
    assert!(!checker.try_acquire("k", "op", &demand! { rpm: 1 }, &requests).wait().unwrap().is_admitted());
}

#[test]
fn usage_of_a_limit_of_which_nothing_was_taken_is_owed() {
    let set = LimitSet::new([Limit::per_day("rpm", 10), Limit::per_day("tpm", 100)]).unwrap();
    let lease = set.acquire(demand! { rpm: 1 }).wait().unwrap();
    lease.settle(demand! { rpm: 1, tpm: 130 }).wait().unwrap();
    assert_eq!(set.peek().wait().unwrap().limit("tpm").unwrap().available(), -30);
}

#[test]
fn a_pool_takes_nothing_before_it_is_polled() {
    let set = LimitSet::new([Limit::per_day("rpm", 5)]).unwrap();
    let pool = LimitPool::new([set.clone()]).unwrap();
    drop(pool.acquire(demand! { rpm: 1 }));
    drop(pool.acquire(demand! { rpm: 1 }).timeout(Duration::from_secs(1)));
    assert_eq!(set.peek().wait().unwrap().limit("rpm").unwrap().available(), 5);
    drop(pool.acquire(demand! { rpm: 1 }).wait().unwrap());
    assert_eq!(set.peek().wait().unwrap().limit("rpm").unwrap().available(), 4);
}

#[test]
fn an_observer_that_panics_leaves_no_resource_held() {
    let observer = |event: &Event<'_>| assert!(!matches!(event, Event::Allowed), "the observer panics");
    let set = LimitSet::builder().limits([Limit::resource("slots", 1)]).observer(observer).build().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| set.try_acquire(demand! {}).wait())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| set.acquire(demand! {}).wait())).is_err());
    assert_eq!(set.peek().wait().unwrap().limit("slots").unwrap().available(), 1);
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker may do anything");
    }
}

#[test]
fn a_waker_that_panics_takes_nobody_elses_wake_up_with_it() {
    let slow = LimitSet::new([Limit::rate("x", 1, Duration::from_millis(20))]).unwrap();
    let other = LimitSet::new([Limit::rate("x", 1, Duration::from_millis(40))]).unwrap();
    for set in [&slow, &other] {
        assert!(matches!(set.try_acquire(demand! { x: 1 }).wait(), Ok(Attempt::Admitted(_))));
    }
    let waker = Waker::from(Arc::new(Panics));
    let mut bad = pin!(slow.acquire(demand! { x: 1 }).into_future());
    assert!(bad.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // Only the timer can wake this one, and the bad waker comes first.
    drop(other.acquire(demand! { x: 1 }).wait().unwrap());
}

#[test]
fn a_name_with_a_nul_is_not_the_name_without() {
    let set = LimitSet::builder().limits([Limit::per_day("rpm", 5)]).build().unwrap();
    assert!(set.try_acquire(demand! { "rpm\0": 1 }).wait().is_err());
}

#[test]
fn a_cooldown_can_be_ended() {
    let set = LimitSet::new([Limit::per_day("rpm", 5)]).unwrap();
    set.cool_down(Duration::MAX).wait().unwrap();
    assert!(!set.try_acquire(demand! { rpm: 1 }).wait().unwrap().is_admitted());
    set.end_cool_down().wait().unwrap();
    assert!(set.try_acquire(demand! { rpm: 1 }).wait().unwrap().is_admitted());
}
