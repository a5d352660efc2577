//! Pools, checks and events.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::{
    AcquireError, Attempt, CheckError, CheckInfo, Checker, Event, LimitPool, LimitSet, Observer, Spread,
};
use tollgate_core::{Limit, Limits, Span, demand};
use tollgate_store::WaitQueues;

use super::fixture::{RecordingObserver, queued, spend, take};
use super::{OpenSetStore, SetFixture};
use crate::fixture::UNEVEN_START;
use crate::poll::eventually;

const SECOND: Duration = Duration::from_secs(1);

fn accounts<const N: usize>(bench: &SetFixture, rpm: [u64; N]) -> LimitPool {
    let account = |(index, rpm): (usize, u64)| -> LimitSet {
        let builder = bench.builder(&format!("account-{index}"), [Limit::per_minute("rpm", rpm)]);
        builder.config("account", index.to_string()).build().expect("it is valid")
    };
    LimitPool::new(rpm.into_iter().enumerate().map(account)).expect("there are sets")
}

fn chosen(pool: &LimitPool) -> Option<String> {
    let attempt = pool.try_acquire(demand! { rpm: 1 }).wait().expect("the demand is valid");
    attempt.admitted().map(|lease| lease.config()["account"].clone())
}

/// One account says no, or not now; the others go on.
pub fn a_pool_moves_on_from_a_set_that_denies_or_cools(open: OpenSetStore<'_>) {
    let bench = SetFixture::new(open);
    let pool = accounts(&bench, [1, 100, 100]);
    let chosen = |times: usize| (0..times).filter_map(|_| chosen(&pool)).collect::<Vec<_>>();
    assert_eq!(chosen(4), ["0", "1", "2", "1"]);
    pool[1].cool_down(10 * SECOND).wait().expect("a store that is there answers");
    assert_eq!(chosen(4), ["2", "2", "2", "2"], "0 has nothing, 1 cools");
    bench.advance_ms(10_000);
    assert!(chosen(3).contains(&"1".to_owned()));
    for set in pool.sets() {
        set.cool_down(5 * SECOND).wait().expect("a store that is there answers");
    }
    let denied = pool.try_acquire(demand! { rpm: 1 }).wait().expect("it is valid").denied();
    assert_eq!(denied.expect("all of them cool").wait(), Some(5 * SECOND));
}

/// It waits in all of them, takes the first grant, and is in no queue afterwards.
pub fn a_pool_waits_in_all_sets_and_takes_the_first_grant(open: OpenSetStore<'_>) {
    let bench = SetFixture::new(open);
    for spread in [Spread::RoundRobin, Spread::Soonest] {
        let pool = accounts(&bench, [1, 3, 2]).spread(spread);
        for (set, rpm) in pool.sets().iter().zip([1_u64, 3, 2]) {
            spend(set, demand! { rpm: rpm });
        }
        let waiting = || [0, 1, 2].map(|index| queued(&pool[index]));
        // They refill every 60, 20 and 30 s.
        let mut first = bench.begin(pool.sets(), pool.acquire(demand! { rpm: 1 }));
        assert_eq!(waiting(), [1, 1, 1], "{spread:?}");
        let error = pool.acquire(demand! { rpm: 1 }).timeout(SECOND).wait().expect_err("that is too soon");
        let AcquireError::TimedOut { denial, .. } = error else { panic!("{error}") };
        assert!(denial.wait() >= Some(20 * SECOND), "the second is the soonest: {denial}");
        bench.advance_ms(20_000);
        assert_eq!(first.answer().expect("its turn has come").config()["account"], "1");
        drop(first);
        assert_eq!(waiting(), [0, 0, 0]);
        assert_eq!(count_all(&pool), 0, "the others kept nothing for it");
        bench.hands.advance(Span::from_secs(3_600));
    }
}

/// Whatever happens to the set that looked best when the wait began.
pub fn a_pool_that_waits_is_granted_by_a_set_that_becomes_free(open: OpenSetStore<'_>) {
    let bench = SetFixture::new(open);
    let pool = accounts(&bench, [1, 1]);
    pool.sets().iter().for_each(|set| spend(set, demand! { rpm: 1 }));
    let mut waiting = bench.begin(pool.sets(), pool.acquire(demand! { rpm: 1 }));
    pool[0].cool_down(600 * SECOND).wait().expect("a store that is there answers");
    bench.advance_ms(60_000);
    assert_eq!(waiting.answer().expect("its turn has come").config()["account"], "1");
    drop(waiting);
    assert_eq!([0, 1].map(|index| queued(&pool[index])), [0, 0]);
}

/// How many calls the pool admits now.
fn count_all(pool: &LimitPool) -> usize {
    let admitted = || pool.try_acquire(demand! { rpm: 1 }).wait().expect("it is valid").admitted();
    std::iter::from_fn(admitted).count()
}

/// For callers who keep no limits.
pub fn checks_charge_all_or_nothing_and_wait_for_the_slowest(open: OpenSetStore<'_>) {
    let bench = SetFixture::new(open);
    let checker = bench.checker();
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
    // rpm is there again after 6 s, tpm after 12 s.
    let costs = demand! { rpm: 1, tpm: 200 };
    let late = checker.acquire("a:b", "chat/x", &costs, &limits).timeout(11 * SECOND).wait();
    assert!(matches!(late, Err(CheckError::TimedOut { waited: Duration::ZERO, .. })), "{late:?}");
    let mut waiting = checker.acquire("a:b", "chat/x", &costs, &limits).into_future();
    let mut passes_at = |micros: u64| {
        bench.hands.set(UNEVEN_START + Span::from_micros(micros));
        (0..2_000).any(|_| {
            std::thread::yield_now();
            match Pin::new(&mut waiting).poll(&mut Context::from_waker(Waker::noop())) {
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

/// Polls a check that does not pass until it has nothing to do but wait: a store may take a moment to deny it.
fn until_parked(bench: &SetFixture, poll: &mut impl FnMut() -> bool) {
    assert!(!poll(), "it does not fit");
    let is_asking = |queues: &WaitQueues| queues.is_empty() || queues.is_busy();
    eventually(|| {
        let is_parked = !bench.backend.as_ref().is_some_and(|backend| is_asking(backend.wait_queues()));
        assert!(is_parked || !poll(), "it does not fit");
        is_parked.then_some(())
    });
}

/// A budget that is spent for the day holds back only the checks that take from it.
pub fn a_check_that_waits_holds_back_no_check_of_another_limit(open: OpenSetStore<'_>) {
    let bench = SetFixture::new(open);
    let checker = bench.checker();
    let limits = Limits::new([Limit::per_day("budget", 1), Limit::per_second("rps", 100)]).expect("valid");
    let check = |budget: u64, rps: u64| {
        let costs = demand! { budget: budget, rps: rps };
        checker.try_acquire("key", "chat", &costs, &limits).wait().expect("it is valid")
    };
    assert!(check(1, 0).is_admitted());
    let costs = demand! { budget: 1, rps: 1 };
    let mut waiting = checker.acquire("key", "chat", &costs, &limits).into_future();
    let mut poll = || Pin::new(&mut waiting).poll(&mut Context::from_waker(Waker::noop())).is_ready();
    until_parked(&bench, &mut poll);
    for number in 0..100 {
        assert!(check(0, 1).is_admitted(), "check {number} takes nothing of the budget");
    }
    let Attempt::Denied(denied) = check(0, 1) else { panic!("the second is used up") };
    assert_eq!(denied.wait(), Some(Duration::from_millis(10)), "the rate denies it, and no waiter");
    assert!(!check(1, 0).is_admitted(), "a waiter is ahead of it");
    assert!(!poll());
    bench.hands.advance(Span::from_secs(86_400));
    eventually(|| poll().then_some(()));
}

/// Labels come from closed sets.
pub fn events_are_reported_once_and_name_only_limits_of_the_set(open: OpenSetStore<'_>) {
    let (bench, ears) = (SetFixture::new(open), RecordingObserver::default());
    let limits = [Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000), Limit::resource("slots", 4)];
    let set = bench.builder("law", limits).observer(ears.observer()).build().expect("it is valid");
    let lease = take(&set, demand! { rpm: 2, tpm: 400 }).expect("it fits");
    assert_eq!(ears.take(), ["Allowed"]);
    lease.settle(demand! { rpm: 0, tpm: 1_000 }).wait().expect("the report is valid");
    let expected = [r#"Refunded { limit: "rpm", amount: 2 }"#, r#"OverUsed { limit: "tpm", amount: 600 }"#];
    assert_eq!(ears.take(), expected);
    assert!(take(&set, demand! { tpm: 200 }).is_none());
    assert_eq!(ears.take(), [r#"Denied { limit: Some("tpm") }"#]);
    set.cool_down(SECOND).wait().expect("a store that is there answers");
    set.cool_down(Duration::ZERO).wait().expect("a store that is there answers");
    assert!(take(&set, demand! { rpm: 1 }).is_none());
    assert_eq!(ears.take(), ["Cooldown { duration: 1s }", "Denied { limit: None }"]);
    bench.advance_ms(60_000);
    spend(&set, demand! { rpm: 10 });
    ears.take();
    // The first waiter in the queue has learned what it waits for.
    let mut waiting = bench.wait_for(&set, demand! { rpm: 1 });
    drop(bench.wait_for(&set, demand! { rpm: 1 }));
    waiting.still_waits();
    bench.advance_ms(6_000);
    drop(waiting.answer());
    assert_eq!(ears.take(), [r#"Waited { limit: Some("rpm"), duration: 6s }"#, "Allowed"]);
}

/// For what has happened already, and for what has not.
pub fn counts_of_checks_can_be_peeked_at_charged_and_refunded(open: OpenSetStore<'_>) {
    let bench = SetFixture::new(open);
    let checker = bench.checker();
    let window = Limit::per_minute("window", 100).algorithm(tollgate_core::Algorithm::SlidingWindow);
    let calls = Limit::calls(10, 60 * SECOND);
    let limits = Limits::new([Limit::per_minute("tpm", 1_000), window, calls]).expect("valid");
    let left = || {
        let statuses = checker.peek("key", "chat", &limits).wait().expect("a store that is there answers");
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

/// What was reported of checks, in order.
#[derive(Clone, Default)]
struct CheckLog(Arc<Mutex<Vec<String>>>);

impl Observer for CheckLog {
    fn observe(&self, event: &Event<'_>) {
        panic!("{event:?} is told of a check");
    }

    fn observe_check(&self, event: &Event<'_>, check: &CheckInfo<'_>) {
        let CheckInfo { entity, operation, metadata, .. } = check;
        let trace = metadata.get("trace").map_or("-", String::as_str);
        let told = format!("{entity} {operation} {trace}: {event:?}");
        self.0.lock().expect("no observer panics").push(told);
    }
}

/// Denied, waited for, and allowed.
pub fn events_of_checks_carry_entity_operation_and_metadata(open: OpenSetStore<'_>) {
    let (bench, log) = (SetFixture::new(open), CheckLog::default());
    let checker = bench.checker().observer(log.clone());
    let traced = checker.metadata([("trace", "t1")]);
    let limits = Limits::new([Limit::per_minute("rpm", 1), Limit::per_minute("tpm", 60)]).expect("valid");
    let costs = demand! { rpm: 1, tpm: 1 };
    let check =
        |checker: &Checker| checker.try_acquire("key", "chat", &costs, &limits).wait().expect("it is valid");
    assert!(check(&checker).is_admitted() && !check(&traced).is_admitted(), "they share their counts");
    let late = traced.acquire("key", "chat", &costs, &limits).timeout(SECOND).wait();
    assert!(late.is_err(), "told at once");
    let mut waiting = traced.acquire("key", "chat", &costs, &limits).into_future();
    let mut poll = || Pin::new(&mut waiting).poll(&mut Context::from_waker(Waker::noop())).is_ready();
    until_parked(&bench, &mut poll);
    bench.advance_ms(60_000);
    eventually(|| poll().then_some(()));
    let expected = [
        "key chat -: Allowed",
        r#"key chat t1: Denied { limit: Some("rpm") }"#,
        r#"key chat t1: Denied { limit: Some("rpm") }"#,
        r#"key chat t1: Waited { limit: Some("rpm"), duration: 60s }"#,
        "key chat t1: Allowed",
    ];
    assert_eq!(*log.0.lock().expect("no observer panics"), expected);
}
