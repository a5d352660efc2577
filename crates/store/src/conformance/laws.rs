//! Laws that random traces would take long to come upon.

use tollgate_core::{Limit, Limits, Tick, Usage, demand};

use crate::{Applied, Call, Clock, Key, ManualClock, Op, OpId, Place, Step, Store, Term};

const START: Tick = Tick::from_secs(1_000_000);

pub(super) fn run<S: Store>(open: &impl Fn(Clock) -> S) {
    a_denied_chain_changes_nothing(open);
    a_call_sent_twice_counts_once(open);
    a_refund_creates_nothing(open);
    debt_is_charged_to_a_forgotten_bucket(open);
    namespaces_have_nothing_in_common(open);
    an_expired_holder_gives_back_once(open);
}

fn limits() -> Limits {
    Limits::new([Limit::per_minute("tpm", 100), Limit::resource("slots", 2)]).expect("these limits are valid")
}

fn available<S: Store>(store: &S, place: &Place<'_>) -> Vec<i64> {
    let statuses = store.peek(place).wait().expect("a store that is there answers");
    statuses.iter().map(tollgate_core::Status::available).collect()
}

fn apply<S: Store>(store: &S, id: u128, steps: &[Step<'_>]) -> Applied {
    store
        .apply(&Call { id: Some(OpId(id)), steps, metered: false })
        .wait()
        .expect("a store that is there answers")
}

fn a_denied_chain_changes_nothing<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open(ManualClock::at(START).clock());
    let limits = limits();
    let keys: Vec<Key> = (0..8).map(|key| Key::new(&[key.to_string()])).collect();
    let small = limits.costs(&demand! { tpm: 1 }).expect("it fits");
    let large = limits.costs(&demand! { tpm: 100 }).expect("it fits");
    let place = |key| Place { namespace: "laws", key, limits: &limits };
    let take = |key, costs| Step { place: place(key), op: Op::Take { costs, term: None } };
    for length in 1..=keys.len() {
        let last = &keys[length - 1];
        let denied_before = apply(&store, length as u128, &[take(last, &small)]);
        assert!(matches!(denied_before, Applied::Done(_)));
        let before: Vec<_> = keys.iter().map(|key| available(&store, &place(key))).collect();
        let chain: Vec<Step<'_>> = keys[..length].iter().map(|key| take(key, &large)).collect();
        let denied = apply(&store, 100 + length as u128, &chain);
        assert!(matches!(&denied, Applied::Denied(denials) if denials.len() == length), "{denied:?}");
        let after: Vec<_> = keys.iter().map(|key| available(&store, &place(key))).collect();
        assert_eq!(after, before, "a denied chain of {length} changed something");
    }
}

fn a_call_sent_twice_counts_once<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open(ManualClock::at(START).clock());
    let (limits, key) = (limits(), Key::new(&["twice"]));
    let place = Place { namespace: "laws", key: &key, limits: &limits };
    let costs = limits.costs(&demand! { tpm: 40 }).expect("it fits");
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let first = apply(&store, 1, &steps);
    assert_eq!(apply(&store, 1, &steps), first);
    assert_eq!(available(&store, &place), [60, 1]);
    let usage = Usage { at: START, reserved: &costs, used: &[10, 1], holder: None };
    let settle = [Step { place, op: Op::Settle(usage) }];
    apply(&store, 2, &settle);
    apply(&store, 2, &settle);
    assert_eq!(available(&store, &place), [90, 2]);
}

fn a_refund_creates_nothing<S: Store>(open: &impl Fn(Clock) -> S) {
    assert_eq!(available_after_settling(open, 10), [100, 2]);
}

fn debt_is_charged_to_a_forgotten_bucket<S: Store>(open: &impl Fn(Clock) -> S) {
    assert_eq!(available_after_settling(open, 90), [50, 2]);
}

/// What is left of a bucket that the store never saw, after a lease of 40 was settled on it.
fn available_after_settling<S: Store>(open: &impl Fn(Clock) -> S, used: u64) -> Vec<i64> {
    let store = open(ManualClock::at(START).clock());
    let (limits, key) = (limits(), Key::new(&["gone"]));
    let place = Place { namespace: "laws", key: &key, limits: &limits };
    let costs = limits.costs(&demand! { tpm: 40 }).expect("it fits");
    let usage = Usage { at: START, reserved: &costs, used: &[used, 1], holder: None };
    apply(&store, 1, &[Step { place, op: Op::Settle(usage) }]);
    available(&store, &place)
}

fn namespaces_have_nothing_in_common<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open(ManualClock::at(START).clock());
    let (limits, key) = (limits(), Key::new(&["same"]));
    let costs = limits.costs(&demand! { tpm: 100 }).expect("it fits");
    for namespace in ["one", "two"] {
        let place = Place { namespace, key: &key, limits: &limits };
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        assert!(matches!(
            store.apply(&Call { id: None, steps: &steps, metered: false }).wait(),
            Ok(Applied::Done(_))
        ));
    }
}

fn an_expired_holder_gives_back_once<S: Store>(open: &impl Fn(Clock) -> S) {
    let hands = ManualClock::at(START);
    let store = open(hands.clock());
    let (limits, key) = (limits(), Key::new(&["held"]));
    let place = Place { namespace: "laws", key: &key, limits: &limits };
    let costs = limits.costs(&demand! { slots: 2 }).expect("it fits");
    let ttl = tollgate_core::Span::from_secs(10);
    let take = |holder| [Step { place, op: Op::Take { costs: &costs, term: Some(Term { holder, ttl }) } }];
    assert!(matches!(apply(&store, 1, &take(1)), Applied::Done(_)));
    assert!(matches!(apply(&store, 2, &take(2)), Applied::Denied(_)));
    hands.advance(ttl);
    assert!(matches!(apply(&store, 3, &take(2)), Applied::Done(_)));
    let usage = Usage { at: START, reserved: &costs, used: &[0, 0], holder: Some(1) };
    apply(&store, 4, &[Step { place, op: Op::Settle(usage) }]);
    assert_eq!(available(&store, &place)[1], 0, "the first holder gave back what is the second's");
}
