//! Top-ups, resets, and settlements of existing buckets only.

use tollgate_core::{Limit, Limits, Span, Usage, demand};
use tollgate_store::{BucketRef, Clock, Key, LeaseTerm, Op, Step, StepOutcome, Store, TxnOutcome};

use super::{apply, available, is_denied, is_done, limits, place, take};
use crate::fixture::{START, open_at_start};

pub(super) fn run<S: Store>(open: &impl Fn(Clock) -> S) {
    a_top_up_repays_debt_and_never_overfills(open);
    a_top_up_of_the_same_id_counts_once(open);
    a_top_up_counts_by_name(open);
    a_reset_bucket_is_as_if_nothing_had_been_used(open);
    a_holder_is_forgotten_by_a_reset(open);
    changing_a_missing_bucket_makes_none(open);
}

fn change<S: Store>(store: &S, id: u128, place: BucketRef<'_>, op: Op<'_>) {
    assert_eq!(apply(store, id, &[Step { place, op }]), TxnOutcome::Done(vec![StepOutcome::Changed]));
}

fn a_top_up_repays_debt_and_never_overfills<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["top", "up"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 50, slots: 1 }).expect("it fits");
    assert!(is_done(&apply(&store, 1, &[take(place, &costs)])));
    let usage = Usage { at: START, reserved: &costs, used: &[130, 1], holder: None };
    apply(&store, 2, &[Step { place, op: Op::SettleExisting(usage) }]);
    assert!(is_done(&apply(
        &store,
        3,
        &[take(place, &limits.costs(&demand! { slots: 1 }).expect("it fits"))]
    )));
    assert_eq!(available(&store, &place), [-30, 1]);
    let credit = limits.costs(&demand! { tpm: 40, slots: 1 }).expect("it fits");
    change(&store, 4, place, Op::TopUp(&credit));
    assert_eq!(available(&store, &place), [10, 1], "only its holder can release a resource");
    let credit = limits.costs(&demand! { tpm: 100 }).expect("it fits");
    change(&store, 5, place, Op::TopUp(&credit));
    assert_eq!(available(&store, &place), [100, 1]);
}

fn a_top_up_of_the_same_id_counts_once<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["top", "twice"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 50 }).expect("it fits");
    let credit = limits.costs(&demand! { tpm: 20 }).expect("it fits");
    assert!(is_done(&apply(&store, 1, &[take(place, &costs)])));
    for _ in 0..3 {
        change(&store, 2, place, Op::TopUp(&credit));
    }
    assert_eq!(available(&store, &place), [70, 1]);
}

/// The limits of the credit have another order than those in force, and one of them is not in force.
fn a_top_up_counts_by_name<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (in_force, key) = (limits(), Key::new(&["top", "named"]));
    let costs = in_force.costs(&demand! { tpm: 50 }).expect("it fits");
    assert!(is_done(&apply(&store, 1, &[take(place(&key, &in_force), &costs)])));
    let others = [Limit::per_minute("rpm", 9), Limit::per_minute("tpm", 30)];
    let others = Limits::new(others).expect("these limits are valid");
    let credit = others.costs(&demand! { rpm: 9, tpm: 30 }).expect("it fits");
    change(&store, 2, place(&key, &others), Op::TopUp(&credit));
    assert_eq!(available(&store, &place(&key, &in_force)), [80, 1]);
}

fn a_reset_bucket_is_as_if_nothing_had_been_used<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["re", "set"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 100, slots: 2 }).expect("it fits");
    assert!(is_done(&apply(&store, 1, &[take(place, &costs)])));
    assert!(is_denied(&apply(&store, 2, &[take(place, &costs)])));
    change(&store, 3, place, Op::Reset);
    assert_eq!(available(&store, &place), [100, 2]);
    assert!(is_done(&apply(&store, 4, &[take(place, &costs)])));
}

fn a_holder_is_forgotten_by_a_reset<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["re", "held"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { slots: 2 }).expect("it fits");
    let term = |holder| LeaseTerm { holder, ttl: Span::from_secs(10) };
    let hold = |holder| [Step { place, op: Op::Take { costs: &costs, term: Some(term(holder)) } }];
    assert!(is_done(&apply(&store, 1, &hold(1))));
    change(&store, 2, place, Op::Reset);
    let renewed = apply(&store, 3, &[Step { place, op: Op::Renew(term(1)) }]);
    assert_eq!(renewed, TxnOutcome::Done(vec![StepOutcome::Renewed(false)]));
    assert!(is_done(&apply(&store, 4, &hold(2))));
    let usage = Usage { at: START, reserved: &costs, used: &[0, 0], holder: Some(1) };
    apply(&store, 5, &[Step { place, op: Op::Settle(usage) }]);
    assert_eq!(available(&store, &place)[1], 0, "the first holder released what the second holds");
}

fn changing_a_missing_bucket_makes_none<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["not", "there"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 40 }).expect("it fits");
    let usage = Usage { at: START, reserved: &costs, used: &[90, 1], holder: None };
    let settled = apply(&store, 1, &[Step { place, op: Op::SettleExisting(usage) }]);
    assert_eq!(settled, TxnOutcome::Done(vec![StepOutcome::Settled]));
    assert_eq!(available(&store, &place), [100, 2]);
    change(&store, 2, place, Op::TopUp(&costs));
    change(&store, 3, place, Op::Reset);
    assert_eq!(available(&store, &place), [100, 2]);
    // A bucket that one of these had made would be under the new limits, and the old ones would be stale.
    let (old, new) = (limits.clone().at_version(1), limits.clone().at_version(2));
    change(&store, 4, super::place(&key, &new), Op::Reset);
    change(&store, 5, super::place(&key, &new), Op::TopUp(&costs));
    assert!(is_done(&apply(&store, 6, &[take(super::place(&key, &old), &costs)])));
}
