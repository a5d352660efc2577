//! Evaluating a call without taking anything.

use tollgate_core::{Denial, Ready, demand};
use tollgate_store::{Clock, Key, Op, Step, Store, TxnOutcome};

use super::{apply, available, is_done, limits, place, take};
use crate::fixture::open_at_start;

pub(super) fn run<S: Store>(open: &impl Fn(Clock) -> S) {
    asking_takes_nothing_and_returns_what_a_take_would(open);
    only_takes_are_evaluated_and_in_order(open);
    asking_makes_no_bucket(open);
}

fn ask<S: Store>(store: &S, steps: &[Step<'_>]) -> Vec<Denial> {
    store.evaluate(steps).wait().expect("the store answers")
}

fn asking_takes_nothing_and_returns_what_a_take_would<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["how", "so"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 60, slots: 1 }).expect("it fits");
    for _ in 0..3 {
        let asked = ask(&store, &[take(place, &costs)]);
        assert_eq!(asked.iter().map(Denial::ready).collect::<Vec<_>>(), [Ready::Now]);
    }
    assert!(is_done(&apply(&store, 1, &[take(place, &costs)])));
    let asked = ask(&store, &[take(place, &costs)]);
    assert_eq!(apply(&store, 2, &[take(place, &costs)]), TxnOutcome::Denied(asked));
    assert_eq!(available(&store, &place), [40, 1]);
}

fn only_takes_are_evaluated_and_in_order<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let limits = limits();
    let keys = ["one", "two", "three"].map(|name| Key::new(&[name, "asked"]));
    let costs = [1, 2, 3].map(|amount| limits.costs(&demand! { tpm: amount }).expect("it fits"));
    let steps = [
        take(place(&keys[0], &limits), &costs[0]),
        Step { place: place(&keys[1], &limits), op: Op::Reset },
        take(place(&keys[2], &limits), &costs[2]),
    ];
    let requested = |denial: &Denial| denial.statuses().map(|status| status.requested()).next();
    assert_eq!(ask(&store, &steps).iter().map(requested).collect::<Vec<_>>(), [Some(1), Some(3)]);
}

/// A bucket that was made would be under the new limits, and the old ones would be stale.
fn asking_makes_no_bucket<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (key, old, new) = (Key::new(&["none", "made"]), limits().at_version(1), limits().at_version(2));
    let costs = new.costs(&demand! { tpm: 1 }).expect("it fits");
    ask(&store, &[take(place(&key, &new), &costs)]);
    available(&store, &place(&key, &new));
    assert!(is_done(&apply(&store, 1, &[take(place(&key, &old), &costs)])));
}
