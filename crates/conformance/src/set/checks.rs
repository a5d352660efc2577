//! Checks: limits that come with the call.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tollgate::{Attempt, CheckError, CheckInfo, Checker, Event, Observer};
use tollgate_core::{Limit, Limits, Span, demand};
use tollgate_store::WaitQueues;

use super::{OpenSetStore, SetFixture};
use crate::fixture::UNEVEN_START;
use crate::poll::{poll, until};

const SECOND: Duration = Duration::from_secs(1);

/// The limits come with the call.
pub fn checks_charge_all_or_nothing_and_wait_for_the_slowest(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let checker = fixture.checker();
    let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000)]).expect("valid");
    let check = |rpm: u64, tpm: u64| {
        checker
            .try_acquire("a:b", "chat/x", &demand! { rpm: rpm, tpm: tpm }, &limits)
            .wait()
            .expect("it is valid")
    };
    assert!(check(1, 900).is_admitted());
    for _ in 0..3 {
        let Attempt::Denied(denied) = check(1, 200) else { panic!("there is no room") };
        assert_eq!(denied.wait(), Some(6 * SECOND));
        assert_eq!(denied.limited_by().expect("a limit refuses").limit().name(), "tpm");
    }
    assert!(check(9, 100).is_admitted(), "what was denied took nothing");
    let other = checker.try_acquire("a", "b:chat/x", &demand! { rpm: 10 }, &limits).wait();
    assert!(other.expect("it is valid").is_admitted(), "the parts of a key stay apart");
    // rpm is available again after 6 s, tpm after 12 s.
    let costs = demand! { rpm: 1, tpm: 200 };
    let late = checker.acquire("a:b", "chat/x", &costs, &limits).timeout(11 * SECOND).wait();
    assert!(matches!(late, Err(CheckError::TimedOut { waited: Duration::ZERO, .. })), "{late:?}");
    let mut waiting = checker.acquire("a:b", "chat/x", &costs, &limits).into_future();
    let mut passes_at = |micros: u64| {
        fixture.clock.set(UNEVEN_START + Span::from_micros(micros));
        (0..2_000).any(|_| {
            std::thread::yield_now();
            match poll(Pin::new(&mut waiting)) {
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(error)) => panic!("{error}"),
                Poll::Pending => false,
            }
        })
    };
    assert!(!passes_at(0) && !passes_at(6_000_000) && !passes_at(11_999_999));
    assert!((0..1_000).any(|_| passes_at(12_000_000)));
    let resource = Limits::new([Limit::resource("slots", 1)]).expect("valid");
    let refused = checker.try_acquire("a", "b", &demand! { slots: 1 }, &resource).wait();
    assert!(matches!(refused, Err(CheckError::Resource(_))), "{refused:?}");
}

/// Polls a check that does not fit until there is nothing to do but wait: a store may take a moment to deny it.
fn until_parked(fixture: &SetFixture, is_ready: &mut impl FnMut() -> bool) {
    assert!(!is_ready(), "it does not fit");
    let is_asking = |queues: &WaitQueues| queues.is_empty() || queues.is_busy();
    until(|| {
        let is_parked = !fixture.backend.as_ref().is_some_and(|backend| is_asking(backend.wait_queues()));
        assert!(is_parked || !is_ready(), "it does not fit");
        is_parked
    });
}

/// A budget that is spent for the day holds back only the checks that take from it.
pub fn a_check_that_waits_holds_back_no_check_of_another_limit(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let checker = fixture.checker();
    let limits = Limits::new([Limit::per_day("budget", 1), Limit::per_second("rps", 100)]).expect("valid");
    let check = |budget: u64, rps: u64| {
        let costs = demand! { budget: budget, rps: rps };
        checker.try_acquire("key", "chat", &costs, &limits).wait().expect("it is valid")
    };
    assert!(check(1, 0).is_admitted());
    let costs = demand! { budget: 1, rps: 1 };
    let mut waiting = checker.acquire("key", "chat", &costs, &limits).into_future();
    let mut is_ready = || poll(Pin::new(&mut waiting)).is_ready();
    until_parked(&fixture, &mut is_ready);
    for number in 0..100 {
        assert!(check(0, 1).is_admitted(), "check {number} takes nothing of the budget");
    }
    let Attempt::Denied(denied) = check(0, 1) else { panic!("the second is used up") };
    assert_eq!(denied.wait(), Some(Duration::from_millis(10)), "the rate denies it, and no waiter");
    assert!(!check(1, 0).is_admitted(), "a waiter is ahead of it");
    assert!(!is_ready());
    fixture.clock.advance(Span::from_secs(86_400));
    until(is_ready);
}

/// Calls that have happened already are charged, and calls that have not are refunded.
pub fn counts_of_checks_can_be_peeked_at_charged_and_refunded(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let checker = fixture.checker();
    let window = Limit::per_minute("window", 100).algorithm(tollgate_core::Algorithm::SlidingWindow);
    let calls = Limit::calls(10, 60 * SECOND);
    let limits = Limits::new([Limit::per_minute("tpm", 1_000), window, calls]).expect("valid");
    let left = || {
        let statuses = checker.peek("key", "chat", &limits).wait().expect("the store answers");
        statuses.iter().map(|status| status.available()).collect::<Vec<_>>()
    };
    let check = |tpm: u64| {
        let checked = checker.try_acquire("key", "chat", &demand! { tpm: tpm, window: 10 }, &limits).wait();
        checked.expect("it is valid").is_admitted()
    };
    assert_eq!(left(), [1_000, 100, 10], "nothing was used yet");
    let refund = |costs| checker.refund("key", "chat", &costs, &limits).wait().expect("it is valid");
    refund(demand! { tpm: 10, window: 0 });
    assert!(check(900));
    assert_eq!(left(), [100, 90, 9]);
    let over = demand! { tpm: 5_200, window: 100 };
    checker.charge("key", "chat", &over, &limits).wait().expect("it is not asked whether it fits");
    assert_eq!(left(), [-5_100, -10, 9], "a call that was not made is not charged");
    assert!(!check(0), "the window is in debt");
    refund(demand! { tpm: 5_300, window: 50 });
    assert_eq!(left(), [200, 40, 9]);
    assert!(check(200) && !check(1));
    refund(demand! { tpm: 9_000, window: 9_000 });
    assert_eq!(left(), [1_000, 100, 8], "no more than what is full");
    let unknown = checker.charge("key", "chat", &demand! { other: 1 }, &limits).wait();
    assert!(matches!(unknown, Err(CheckError::Demand(_))), "{unknown:?}");
    let resource = Limits::new([Limit::resource("slots", 1)]).expect("valid");
    assert!(matches!(checker.peek("key", "chat", &resource).wait(), Err(CheckError::Resource(_))));
}

/// The events of checks that an observer got, in order.
#[derive(Clone, Default)]
struct CheckLog(Arc<Mutex<Vec<String>>>);

impl Observer for CheckLog {
    fn observe(&self, event: &Event<'_>) {
        panic!("{event:?} is reported without its check");
    }

    fn observe_check(&self, event: &Event<'_>, check: &CheckInfo<'_>) {
        let CheckInfo { entity, operation, metadata, .. } = check;
        let trace = metadata.get("trace").map_or("-", String::as_str);
        let line = format!("{entity} {operation} {trace}: {event:?}");
        self.0.lock().expect("no observer panics").push(line);
    }
}

/// Checks are denied, waited for, and allowed.
pub fn events_of_checks_carry_entity_operation_and_metadata(open: OpenSetStore<'_>) {
    let (fixture, log) = (SetFixture::new(open), CheckLog::default());
    let checker = fixture.checker().observer(log.clone());
    let traced = checker.metadata([("trace", "t1")]);
    let limits = Limits::new([Limit::per_minute("rpm", 1), Limit::per_minute("tpm", 60)]).expect("valid");
    let costs = demand! { rpm: 1, tpm: 1 };
    let check =
        |checker: &Checker| checker.try_acquire("key", "chat", &costs, &limits).wait().expect("it is valid");
    assert!(check(&checker).is_admitted() && !check(&traced).is_admitted(), "they share their counts");
    let late = traced.acquire("key", "chat", &costs, &limits).timeout(SECOND).wait();
    assert!(late.is_err(), "it fails at once");
    let mut waiting = traced.acquire("key", "chat", &costs, &limits).into_future();
    let mut is_ready = || poll(Pin::new(&mut waiting)).is_ready();
    until_parked(&fixture, &mut is_ready);
    fixture.advance_ms(60_000);
    until(is_ready);
    let expected = [
        "key chat -: Allowed",
        r#"key chat t1: Denied { limit: Some("rpm") }"#,
        r#"key chat t1: Denied { limit: Some("rpm") }"#,
        r#"key chat t1: Waited { limit: Some("rpm"), duration: 60s }"#,
        "key chat t1: Allowed",
    ];
    assert_eq!(*log.0.lock().expect("no observer panics"), expected);
}
