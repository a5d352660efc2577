//! Versions of limits: the latest that a bucket was used under stay in force.

use tollgate_core::{Limit, Limits, Span, Status, demand};
use tollgate_store::{Clock, Key, Store, TxnOutcome};

use super::{apply, available, is_denied, is_done, place, take};
use crate::fixture::{START, open_at, open_at_start};

pub(super) fn run<S: Store>(open: &impl Fn(Clock) -> S) {
    limits_of_an_earlier_version_are_stale_and_change_nothing(open);
    the_first_stale_step_is_named_also_where_another_is_denied(open);
    equal_limits_of_a_later_version_make_the_earlier_ones_stale(open);
    limits_without_a_version_are_never_stale(open);
    raised_limits_take_effect_though_the_take_is_denied(open);
    a_peek_at_a_bucket_of_later_limits_reports_those(open);
}

fn tpm(capacity: u64, version: u64) -> Limits {
    Limits::new([Limit::per_minute("tpm", capacity)]).expect("these limits are valid").at_version(version)
}

/// Takes `amount` of the bucket under these limits.
fn take_under<S: Store>(store: &S, id: u128, key: &Key, limits: &Limits, amount: u64) -> TxnOutcome {
    let costs = limits.costs(&demand! { tpm: amount }).expect("it fits");
    apply(store, id, &[take(place(key, limits), &costs)])
}

fn limits_of_an_earlier_version_are_stale_and_change_nothing<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (key, old, new) = (Key::new(&["a", "version"]), tpm(100, 1), tpm(10, 2));
    assert!(is_done(&take_under(&store, 1, &key, &old, 10)));
    assert!(is_done(&take_under(&store, 2, &key, &new, 1)), "it was clamped to 10");
    assert_eq!(take_under(&store, 3, &key, &old, 5), TxnOutcome::Stale(0));
    assert_eq!(available(&store, &place(&key, &new)), [9]);
    assert!(is_done(&take_under(&store, 3, &key, &new, 5)), "what was stale has used up no id");
    assert_eq!(available(&store, &place(&key, &new)), [4]);
}

fn the_first_stale_step_is_named_also_where_another_is_denied<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (old, new) = (tpm(10, 1), tpm(10, 2));
    let keys = ["full", "past", "past too"].map(|name| Key::new(&[name, "version"]));
    assert!(is_done(&take_under(&store, 1, &keys[0], &old, 10)));
    assert!(is_done(&take_under(&store, 2, &keys[1], &new, 1)));
    assert!(is_done(&take_under(&store, 3, &keys[2], &new, 1)));
    let costs = old.costs(&demand! { tpm: 1 }).expect("it fits");
    let chain = [0, 1, 2].map(|index| take(place(&keys[index], &old), &costs));
    assert_eq!(apply(&store, 4, &chain), TxnOutcome::Stale(1));
    assert_eq!(available(&store, &place(&keys[1], &new)), [9]);
}

fn equal_limits_of_a_later_version_make_the_earlier_ones_stale<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let key = Key::new(&["same", "version"]);
    assert!(is_done(&take_under(&store, 1, &key, &tpm(10, 1), 1)));
    assert!(is_done(&take_under(&store, 2, &key, &tpm(10, 3), 1)));
    assert_eq!(take_under(&store, 3, &key, &tpm(10, 2), 1), TxnOutcome::Stale(0));
    assert!(is_done(&take_under(&store, 4, &key, &tpm(10, 3), 1)));
    assert_eq!(available(&store, &place(&key, &tpm(10, 3))), [7]);
}

fn limits_without_a_version_are_never_stale<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let key = Key::new(&["no", "version"]);
    assert!(is_done(&take_under(&store, 1, &key, &tpm(10, 5), 1)));
    assert!(is_done(&take_under(&store, 2, &key, &tpm(10, 0), 1)));
    assert_eq!(
        take_under(&store, 3, &key, &tpm(10, 4), 1),
        TxnOutcome::Stale(0),
        "equal ones left it as it was"
    );
    assert!(is_done(&take_under(&store, 4, &key, &tpm(6, 0), 1)));
    assert!(is_done(&take_under(&store, 5, &key, &tpm(6, 4), 1)), "others are those in force");
    assert_eq!(available(&store, &place(&key, &tpm(6, 4))), [4]);
}

/// Otherwise the bucket would refill up to the old limits only, and the demand would never be admitted.
fn raised_limits_take_effect_though_the_take_is_denied<S: Store>(open: &impl Fn(Clock) -> S) {
    let (clock, store) = open_at(START, open);
    let (key, old, new) = (Key::new(&["raised", "version"]), tpm(10, 1), tpm(60, 2));
    assert!(is_done(&take_under(&store, 1, &key, &old, 10)));
    assert!(is_denied(&take_under(&store, 2, &key, &new, 60)));
    clock.advance(Span::from_secs(60));
    assert!(is_done(&take_under(&store, 3, &key, &new, 60)), "a minute at the new rate fills it");
}

fn a_peek_at_a_bucket_of_later_limits_reports_those<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (key, old, new) = (Key::new(&["looked", "at"]), tpm(100, 1), tpm(10, 2));
    assert!(is_done(&take_under(&store, 1, &key, &new, 4)));
    let peeked = store.peek(&place(&key, &old)).wait().expect("the store answers");
    let capacity_and_left = |status: &Status| (status.limit().capacity(), status.available());
    assert_eq!(peeked.iter().map(capacity_and_left).collect::<Vec<_>>(), [(10, 6)]);
    let costs = old.costs(&demand! { tpm: 7 }).expect("it fits");
    let asked = store.evaluate(&[take(place(&key, &old), &costs)]).wait().expect("the store answers");
    assert_eq!(asked[0].statuses().map(|status| capacity_and_left(&status)).collect::<Vec<_>>(), [(10, 6)]);
    assert_eq!(asked[0].limits().version(), 2);
    assert!(is_done(&take_under(&store, 2, &key, &tpm(10, 5), 1)));
    let asked = store.evaluate(&[take(place(&key, &old), &costs)]).wait().expect("the store answers");
    assert_eq!(asked[0].limits().version(), 5, "equal limits of a later version");
}
