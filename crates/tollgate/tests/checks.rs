//! Checks with limits that come with the call.

mod support;

use std::thread;
use std::time::Duration;

use support::{START, advance_ms, answer, hands, poll};
use tollgate::{
    AsDemand, Attempt, BadAmount, CheckError, Checker, DemandError, Limit, LimitBuilder, Limits, ManualClock,
    Memory, Span, demand,
};

fn checker(hands: &ManualClock) -> Checker {
    Checker::in_memory(&Memory::builder().clock(hands.clock()).build(), "tests")
}

fn limits<const N: usize>(limits: [LimitBuilder; N]) -> Limits {
    Limits::new(limits).expect("the limits of a test are valid")
}

fn admitted(checker: &Checker, costs: impl AsDemand, limits: &Limits) -> bool {
    checker.try_acquire("key", "chat", &costs, limits).wait().expect("the costs are valid").is_admitted()
}

/// How many checks of these costs are admitted now.
fn count(checker: &Checker, costs: impl AsDemand, limits: &Limits) -> usize {
    std::iter::from_fn(|| admitted(checker, &costs, limits).then_some(())).count()
}

fn wait<'a>(
    checker: &'a Checker,
    costs: impl AsDemand,
    limits: &'a Limits,
) -> tollgate::Reply<'a, Result<(), CheckError>> {
    checker.acquire("key", "chat", costs, limits).into_future()
}

#[test]
fn the_parts_of_a_key_stay_apart() {
    let (hands, rpm) = (hands(), limits([Limit::per_minute("rpm", 1)]));
    let checker = checker(&hands);
    let keys = [("a:b", "c"), ("a", "b:c"), ("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("", "")];
    for (entity, operation) in keys {
        let first = checker.try_acquire(entity, operation, &demand! { rpm: 1 }, &rpm).wait().unwrap();
        assert!(first.is_admitted(), "{entity:?} {operation:?}");
    }
    for (entity, operation) in keys {
        let again = checker.try_acquire(entity, operation, &demand! { rpm: 1 }, &rpm).wait().unwrap();
        assert!(!again.is_admitted(), "{entity:?} {operation:?}");
    }
}

#[test]
fn clones_and_checkers_of_one_namespace_share_counts_and_others_do_not() {
    let (hands, rpm) = (hands(), limits([Limit::per_minute("rpm", 3)]));
    let memory = Memory::builder().clock(hands.clock()).build();
    let one = Checker::in_memory(&memory, "one");
    let costs = demand! { rpm: 1 };
    assert!(admitted(&one, &costs, &rpm) && admitted(&one.clone(), &costs, &rpm));
    assert!(admitted(&Checker::in_memory(&memory, "one"), &costs, &rpm));
    assert!(!admitted(&one, &costs, &rpm));
    assert_eq!(count(&Checker::in_memory(&memory, "two"), &costs, &rpm), 3);
}

#[test]
fn what_is_wrong_with_the_costs_is_an_error_in_both_and_charges_nothing() {
    let hands = hands();
    let checker = checker(&hands);
    let rates = limits([Limit::per_minute("rpm", 5), Limit::per_minute("tpm", 5)]);
    let both = |costs: &dyn AsDemand| {
        let checked = checker.try_acquire("key", "chat", &costs, &rates).wait().unwrap_err();
        let waited = checker.acquire("key", "chat", &costs, &rates).wait().unwrap_err();
        assert_eq!(checked, waited);
        let CheckError::Demand(why) = checked else { panic!("{checked}") };
        why
    };
    assert!(
        matches!(both(&demand! { rpm: 1, gpu: 1 }), DemandError::UnknownLimit { name, .. } if &*name == "gpu")
    );
    assert!(matches!(
        both(&demand! { rpm: 1, tpm: 6 }),
        DemandError::Impossible { asked: 6, capacity: 5, .. }
    ));
    assert!(matches!(both(&demand! {}), DemandError::MissingAmount { .. }));
    let DemandError::BadAmount { why, .. } = both(&demand! { rpm: 1, tpm: -1 }) else {
        panic!("another error")
    };
    assert_eq!(*why, BadAmount::Negative(-1));
    assert_eq!(count(&checker, demand! { rpm: 1, tpm: 1 }, &rates), 5, "nothing was charged");
}

#[test]
fn a_resource_is_refused_in_both_because_a_check_cannot_give_it_back() {
    let hands = hands();
    let checker = checker(&hands);
    let mixed = limits([Limit::per_minute("rpm", 5), Limit::resource("connections", 5)]);
    let costs = demand! { rpm: 1, connections: 1 };
    let checked = checker.try_acquire("key", "chat", &costs, &mixed).wait().unwrap_err();
    let waited = checker.acquire("key", "chat", &costs, &mixed).wait().unwrap_err();
    for error in [checked, waited] {
        assert!(matches!(&error, CheckError::Resource(name) if name == "connections"), "{error}");
    }
    assert_eq!(count(&checker, demand! { rpm: 1 }, &limits([Limit::per_minute("rpm", 5)])), 5);
}

#[test]
fn a_check_charges_all_buckets_or_none() {
    let hands = hands();
    let checker = checker(&hands);
    let both = limits([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000)]);
    let costs = demand! { rpm: 1, tpm: 400 };
    assert_eq!(count(&checker, &costs, &both), 2);
    let Attempt::Denied(denial) = checker.try_acquire("key", "chat", &costs, &both).wait().unwrap() else {
        panic!("admitted a third")
    };
    assert_eq!(denial.limited_by().unwrap().limit().name(), "tpm");
    assert_eq!(denial.wait(), Some(Duration::from_secs(12)));
    assert_eq!(count(&checker, demand! { rpm: 1, tpm: 0 }, &both), 98, "denials have charged nothing");
}

#[test]
fn a_waiting_check_waits_for_the_longest_of_its_buckets_and_charges_each_once() {
    let hands = hands();
    let checker = checker(&hands);
    let both = limits([
        Limit::rate("rpm", 1, Duration::from_secs(3)),
        Limit::rate("tpm", 100, Duration::from_secs(7)),
    ]);
    let costs = demand! { rpm: 1, tpm: 100 };
    assert!(answer(&mut wait(&checker, &costs, &both)).is_ok(), "at once if all are clear");
    let mut waiting = wait(&checker, &costs, &both);
    assert!(poll(&mut waiting).is_pending());
    hands.set(START + Span::from_micros(6_999_999));
    assert!(poll(&mut waiting).is_pending());
    hands.set(START + Span::from_secs(7));
    assert_eq!(answer(&mut waiting), Ok(()));
    assert!(!admitted(&checker, demand! { rpm: 1 }, &both), "the grant was charged");
    hands.set(START + Span::from_secs(10));
    assert!(admitted(&checker, demand! { rpm: 1 }, &both), "and charged once");
}

#[test]
fn a_wait_longer_than_allowed_is_told_at_once_with_the_wait_it_would_have_taken() {
    let hands = hands();
    let checker = checker(&hands);
    let rpm = limits([Limit::per_minute("rpm", 1)]);
    assert!(admitted(&checker, demand! { rpm: 1 }, &rpm));
    let bounded = |bound| {
        let costs = demand! { rpm: 1 };
        let mut waiting = checker.acquire("key", "chat", &costs, &rpm).timeout(bound).into_future();
        match poll(&mut waiting) {
            std::task::Poll::Ready(outcome) => outcome,
            std::task::Poll::Pending => Ok(()),
        }
    };
    for bound in [Duration::ZERO, Duration::from_secs(59), Duration::from_micros(59_999_999)] {
        let CheckError::TimedOut { denial, waited } = bounded(bound).unwrap_err() else {
            panic!("another error")
        };
        assert_eq!((denial.wait(), waited), (Some(Duration::from_secs(60)), Duration::ZERO));
    }
    assert_eq!(bounded(Duration::from_secs(60)), Ok(()), "what fits is waited for");
    advance_ms(&hands, 60_000);
    assert_eq!(count(&checker, demand! { rpm: 1 }, &rpm), 1, "and the others have left no trace");
}

#[test]
fn those_who_wait_go_in_the_order_they_came_and_no_check_overtakes_them() {
    let hands = hands();
    let checker = checker(&hands);
    let rpm = limits([Limit::per_minute("rpm", 2).burst(10)]);
    assert!(admitted(&checker, demand! { rpm: 10 }, &rpm));
    let mut large = wait(&checker, demand! { rpm: 2 }, &rpm);
    let mut small = wait(&checker, demand! { rpm: 1 }, &rpm);
    assert!(poll(&mut large).is_pending() && poll(&mut small).is_pending());
    advance_ms(&hands, 30_000);
    assert!(!admitted(&checker, demand! { rpm: 1 }, &rpm), "there is one, but it is not its turn");
    assert!(poll(&mut large).is_pending() && poll(&mut small).is_pending());
    advance_ms(&hands, 30_000);
    assert_eq!(answer(&mut large), Ok(()));
    assert!(poll(&mut small).is_pending());
    advance_ms(&hands, 30_000);
    assert_eq!(answer(&mut small), Ok(()));
}

#[test]
fn a_wait_that_is_dropped_leaves_no_trace_and_the_next_is_looked_at() {
    for polls in 0..3 {
        let hands = hands();
        let checker = checker(&hands);
        let rpm = limits([Limit::per_minute("rpm", 6)]);
        assert!(admitted(&checker, demand! { rpm: 6 }, &rpm));
        let mut first = wait(&checker, demand! { rpm: 6 }, &rpm);
        (0..polls).for_each(|_| assert!(poll(&mut first).is_pending()));
        let mut next = wait(&checker, demand! { rpm: 1 }, &rpm);
        assert!(poll(&mut next).is_pending());
        advance_ms(&hands, 10_000);
        drop(first);
        assert_eq!(answer(&mut next), Ok(()), "after {polls} polls");
        // Granted and not yet polled again, then dropped: given back.
        let mut unheard = wait(&checker, demand! { rpm: 1 }, &rpm);
        assert!(poll(&mut unheard).is_pending());
        advance_ms(&hands, 10_000);
        drop(unheard);
        assert_eq!(count(&checker, demand! { rpm: 1 }, &rpm), 1);
    }
}

#[test]
fn changed_limits_keep_what_was_used() {
    let hands = hands();
    let checker = checker(&hands);
    let of = |amount: u64| limits([Limit::per_minute("rpm", amount)]);
    assert_eq!(count(&checker, demand! { rpm: 1 }, &of(10)), 10);
    assert_eq!(count(&checker, demand! { rpm: 1 }, &of(100)), 0, "a raised limit mints nothing");
    hands.advance(Span::from_secs(6));
    assert_eq!(count(&checker, demand! { rpm: 1 }, &of(100)), 10, "and refills at its rate");
    hands.advance(Span::from_secs(60));
    assert_eq!(count(&checker, demand! { rpm: 1 }, &of(5)), 5, "a lowered one clamps");
    // A limit that comes and goes by name leaves the others as they are.
    let two = limits([Limit::per_minute("tpm", 50), Limit::per_minute("rpm", 5)]);
    assert!(!admitted(&checker, demand! { rpm: 1, tpm: 1 }, &two));
    assert!(admitted(&checker, demand! { tpm: 50 }, &two));
}

#[test]
fn one_who_waits_hears_of_limits_that_another_call_has_changed() {
    let hands = hands();
    let checker = checker(&hands);
    let of = |amount: u64, burst: u64| limits([Limit::per_minute("rpm", amount).burst(burst)]);
    assert!(admitted(&checker, demand! { rpm: 10 }, &of(1, 10)));
    let [slow, fast] = [of(1, 10), of(60, 10)];
    let mut waiting = wait(&checker, demand! { rpm: 5 }, &slow);
    assert!(poll(&mut waiting).is_pending());
    // Raised by a check: five come in 5 s, and not in 5 minutes.
    assert!(!admitted(&checker, demand! { rpm: 1 }, &of(60, 10)));
    advance_ms(&hands, 5_000);
    assert_eq!(answer(&mut waiting), Ok(()));

    let mut waiting = wait(&checker, demand! { rpm: 5 }, &fast);
    assert!(poll(&mut waiting).is_pending());
    // Lowered by a check: what is waited for can never be had any more.
    assert!(!admitted(&checker, demand! { rpm: 1 }, &of(60, 4)));
    let error = answer(&mut waiting).unwrap_err();
    assert!(matches!(error, CheckError::Demand(DemandError::Impossible { capacity: 4, .. })), "{error}");
}

#[test]
fn costs_are_counted_in_the_limits_they_came_with_although_others_came_in_between() {
    let hands = hands();
    let checker = checker(&hands);
    let one = limits([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000)]);
    let other = limits([Limit::per_minute("tpm", 1_000), Limit::per_minute("rpm", 10)]);
    let fewer = limits([Limit::per_minute("tpm", 1_000)]);
    for between in [&other, &fewer] {
        let mut waiting = wait(&checker, demand! { rpm: 1, tpm: 100 }, &one);
        assert!(admitted(&checker, demand! { tpm: 0 }, between));
        assert_eq!(answer(&mut waiting), Ok(()));
    }
    assert_eq!(count(&checker, demand! { tpm: 1 }, &fewer), 800);
}

#[test]
fn threads_wait_with_no_runtime() {
    let hands = hands();
    let checker = checker(&hands);
    let rpm = limits([Limit::per_minute("rpm", 1)]);
    assert!(admitted(&checker, demand! { rpm: 1 }, &rpm));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&checker, demand! { rpm: 1 }, &rpm).wait());
        // Whenever it comes, it is admitted once for each minute that was turned.
        support::until("the thread was admitted", || {
            advance_ms(&hands, 60_000);
            waiting.is_finished()
        });
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}
