//! Limits that are replaced and sets that cool down, while others wait.

mod support;

use std::thread;
use std::time::Duration;

use support::{START, advance_ms, answer, available, built, count, hands, poll, set, spend, try_take};
use tollgate::{AcquireError, Algorithm, DemandError, Limit, LimitsError, Ready, Span, demand};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_raised_limit_lets_those_pass_who_now_can_and_mints_nothing() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 1), Limit::resource("slots", 1)]);
    let held = try_take(&set, demand! { rpm: 0 }).unwrap();
    let mut waiting = set.acquire(demand! { rpm: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    set.replace(Limit::resource("slots", 2)).wait().unwrap();
    assert!(answer(&mut waiting).is_ok(), "at once");
    drop(held);

    let mut waiting = set.acquire(demand! { rpm: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    set.replace(Limit::per_minute("rpm", 60)).wait().unwrap();
    assert!(poll(&mut waiting).is_pending(), "raising the rate mints nothing");
    advance_ms(&hands, 999);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 1);
    assert!(answer(&mut waiting).is_ok(), "but the wait is that of the new rate");
    assert_eq!(set.limits()[0], built(Limit::per_minute("rpm", 60)));
}

#[test]
fn a_lowered_limit_tells_those_at_once_who_never_could_pass_any_more() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 10)]);
    spend(&set, demand! { rpm: 10 });
    let mut large = set.acquire(demand! { rpm: 8 }).into_future();
    let mut small = set.acquire(demand! { rpm: 1 }).into_future();
    assert!(poll(&mut large).is_pending() && poll(&mut small).is_pending());
    set.replace(Limit::per_minute("rpm", 5)).wait().unwrap();
    let error = answer(&mut large).unwrap_err();
    let impossible = DemandError::Impossible { limit: set.limits()[0].name().clone(), asked: 8, capacity: 5 };
    assert_eq!(error, AcquireError::Demand(impossible));
    assert_eq!(set.peek().wait().unwrap().waiting, 1);
    advance_ms(&hands, 12_000);
    assert!(answer(&mut small).is_ok(), "and those behind it move up");
    hands.advance(Span::from_secs(3_600));
    assert_eq!(count(&set, demand! { rpm: 1 }), 5);
}

#[test]
fn a_lowered_resource_waits_for_those_who_hold_more_than_there_is_now() {
    let set = set(&hands(), [Limit::resource("slots", 4)]);
    let mut held: Vec<_> = (0..4).map(|_| try_take(&set, demand! {}).unwrap()).collect();
    set.replace(Limit::resource("slots", 2)).wait().unwrap();
    assert_eq!(available(&set, "slots"), -2);
    for left in [-1, 0, 1, 2] {
        assert!(left > 0 || try_take(&set, demand! {}).is_none());
        drop(held.pop());
        assert_eq!(available(&set, "slots"), left);
    }
}

#[test]
fn a_lease_from_before_a_change_settles_in_what_it_took() {
    let set = set(&hands(), [Limit::per_minute("tpm", 1_000), Limit::resource("slots", 2)]);
    let lease = try_take(&set, demand! { tpm: 600 }).unwrap();
    set.replace(Limit::per_minute("tpm", 2_000)).wait().unwrap();
    assert_eq!(available(&set, "tpm"), 400);
    lease.settle(demand! { tpm: 100 }).wait().unwrap();
    assert_eq!((available(&set, "tpm"), available(&set, "slots")), (900, 2));
}

#[test]
fn another_kind_and_another_name_are_refused_and_another_algorithm_is_not() {
    let set = set(&hands(), [Limit::per_minute("rpm", 10), Limit::resource("slots", 2)]);
    let other = |limit: tollgate::LimitBuilder| match set.replace(limit).wait().unwrap_err() {
        tollgate::ReplaceError::Limits(why) => why,
        other => panic!("{other}"),
    };
    assert!(matches!(other(Limit::resource("rpm", 10)), LimitsError::OtherKind(name) if name == "rpm"));
    assert!(matches!(other(Limit::quota("rpm", 10, MINUTE)), LimitsError::OtherKind(_)));
    assert!(matches!(other(Limit::calls(10, MINUTE).named("rpm")), LimitsError::OtherKind(_)));
    assert!(matches!(other(Limit::per_minute("slots", 2)), LimitsError::OtherKind(_)));
    assert!(matches!(other(Limit::per_minute("tpm", 2)), LimitsError::Unknown(name) if name == "tpm"));
    assert!(matches!(other(Limit::per_minute("rpm", 0)), LimitsError::Limit(_)));
    spend(&set, demand! { rpm: 4 });
    for algorithm in [Algorithm::SlidingWindow, Algorithm::FixedWindow, Algorithm::Gcra] {
        set.replace(Limit::per_minute("rpm", 10).algorithm(algorithm)).wait().unwrap();
        assert_eq!(available(&set, "rpm"), 6, "{algorithm}");
    }
}

#[test]
fn of_changes_made_at_once_by_many_threads_none_is_lost() {
    let names: Vec<String> = (0..8).map(|index| format!("limit-{index}")).collect();
    for round in 2..200_u64 {
        let limits = names.iter().map(|name| Limit::per_minute(name, 1));
        let set = tollgate::LimitSet::new(limits).unwrap();
        thread::scope(|scope| {
            for name in &names {
                let set = &set;
                scope.spawn(move || set.replace(Limit::per_minute(name, round)).wait().unwrap());
            }
        });
        let amounts: Vec<_> = set.limits().iter().map(Limit::amount).collect();
        assert_eq!(amounts, [round; 8]);
    }
}

#[test]
fn a_cooldown_admits_nobody_until_it_ends_and_then_those_who_wait_first() {
    let hands = hands();
    let set = set(&hands, [Limit::per_second("rps", 100)]);
    set.cool_down(10 * SECOND).wait().unwrap();
    assert_eq!(set.peek().wait().unwrap().cooling_until, Some(START + Span::from_secs(10)));
    let denial = set.try_acquire(demand! { rps: 1 }).wait().unwrap().denied().unwrap();
    assert_eq!(denial.wait(), Some(10 * SECOND));
    assert_eq!(denial.limited_by(), None, "no limit refuses");
    assert_eq!(set.ready(demand! { rps: 1 }).wait().unwrap(), Ready::At(START + Span::from_secs(10)));
    let mut waiting = set.acquire(demand! { rps: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());

    advance_ms(&hands, 9_999);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 1);
    assert!(answer(&mut waiting).is_ok());
    assert_eq!(set.peek().wait().unwrap().cooling_until, None);
    assert_eq!(count(&set, demand! { rps: 1 }), 99);
}

#[test]
fn a_cooldown_is_extended_by_a_later_end_and_never_shortened() {
    let hands = hands();
    let set = set(&hands, [Limit::per_second("rps", 1)]);
    set.cool_down(10 * SECOND).wait().unwrap();
    let mut waiting = set.acquire(demand! { rps: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    set.cool_down(SECOND).wait().unwrap();
    assert_eq!(set.peek().wait().unwrap().cooling_until, Some(START + Span::from_secs(10)));
    set.cool_down(20 * SECOND).wait().unwrap();
    advance_ms(&hands, 19_999);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 1);
    assert!(answer(&mut waiting).is_ok());
}

#[test]
fn a_cooldown_that_is_too_long_for_a_timeout_is_told_at_once() {
    let set = set(&hands(), [Limit::per_second("rps", 1)]);
    set.cool_down(MINUTE).wait().unwrap();
    let error = set.acquire(demand! { rps: 1 }).timeout(59 * SECOND).wait().unwrap_err();
    let AcquireError::TimedOut { denial, waited } = error else { panic!("{error}") };
    assert_eq!((denial.wait(), waited), (Some(MINUTE), Duration::ZERO));
}

#[test]
fn a_cooldown_that_is_extended_past_a_deadline_is_in_the_wait_that_is_told_then() {
    let hands = hands();
    let set = set(&hands, [Limit::per_second("rps", 1)]);
    set.cool_down(5 * SECOND).wait().unwrap();
    let mut waiting = set.acquire(demand! { rps: 1 }).timeout(10 * SECOND).into_future();
    assert!(poll(&mut waiting).is_pending());
    set.cool_down(MINUTE).wait().unwrap();
    advance_ms(&hands, 9_999);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 1);
    let AcquireError::TimedOut { denial, waited } = answer(&mut waiting).unwrap_err() else { panic!() };
    assert_eq!((denial.wait(), waited), (Some(50 * SECOND), 10 * SECOND));
}
