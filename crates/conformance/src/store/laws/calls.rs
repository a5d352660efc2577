//! Calls are applied as a whole or not at all, and once.

use tollgate_core::{CustomLimit, Limit, Limits, Ready, Tick, Usage, demand};
use tollgate_store::{
    BucketRef, Clock, Key, LeaseTerm, Op, Step, Store, StoreError, Transaction, TxnOutcome,
};

use super::{apply, available, is_denied, is_done, limits, place, take};
use crate::fixture::{START, open_at, open_at_start};
use crate::poll::within_tries;

pub(super) fn run<S: Store>(open: &impl Fn(Clock) -> S) {
    a_denied_chain_changes_nothing(open);
    a_call_sent_twice_counts_once(open);
    a_detached_call_is_applied(open);
    a_refund_creates_nothing(open);
    debt_is_charged_to_a_forgotten_bucket(open);
    namespaces_have_nothing_in_common(open);
    an_expired_holder_gives_back_once(open);
    two_holders_are_never_the_same(open);
    two_steps_for_one_bucket_are_refused(open);
    a_metered_key_has_two_parts(open);
    a_custom_limit_is_refused(open);
}

fn a_denied_chain_changes_nothing<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let limits = limits();
    let keys: Vec<Key> = (0..8).map(|key| Key::new(&[key.to_string()])).collect();
    let small = limits.costs(&demand! { tpm: 1 }).expect("it fits");
    let large = limits.costs(&demand! { tpm: 100 }).expect("it fits");
    let place = |key| place(key, &limits);
    for length in 1..=keys.len() {
        let last = &keys[length - 1];
        let denied_before = apply(&store, length as u128, &[take(place(last), &small)]);
        assert!(is_done(&denied_before));
        let before: Vec<_> = keys.iter().map(|key| available(&store, &place(key))).collect();
        let chain: Vec<Step<'_>> = keys[..length].iter().map(|key| take(place(key), &large)).collect();
        let denied = apply(&store, 100 + length as u128, &chain);
        assert!(matches!(&denied, TxnOutcome::Denied(denials) if denials.len() == length), "{denied:?}");
        let after: Vec<_> = keys.iter().map(|key| available(&store, &place(key))).collect();
        assert_eq!(after, before, "a denied chain of {length} changed something");
    }
}

fn a_call_sent_twice_counts_once<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["twice"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 40 }).expect("it fits");
    let steps = [take(place, &costs)];
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

/// Returns what is left of a bucket that did not exist, after a lease of 40 was settled on it.
fn available_after_settling<S: Store>(open: &impl Fn(Clock) -> S, used: u64) -> Vec<i64> {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["gone"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 40 }).expect("it fits");
    let usage = Usage { at: START, reserved: &costs, used: &[used, 1], holder: None };
    apply(&store, 1, &[Step { place, op: Op::Settle(usage) }]);
    available(&store, &place)
}

fn namespaces_have_nothing_in_common<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["same"]));
    let costs = limits.costs(&demand! { tpm: 100 }).expect("it fits");
    for namespace in ["one", "two"] {
        let steps = [take(BucketRef { namespace, ..place(&key, &limits) }, &costs)];
        let applied = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait();
        assert!(applied.is_ok_and(|applied| is_done(&applied)), "{namespace} is not empty");
    }
}

fn an_expired_holder_gives_back_once<S: Store>(open: &impl Fn(Clock) -> S) {
    let (clock, store) = open_at(START, open);
    let (limits, key) = (limits(), Key::new(&["held"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { slots: 2 }).expect("it fits");
    let ttl = tollgate_core::Span::from_secs(10);
    let hold =
        |holder| [Step { place, op: Op::Take { costs: &costs, term: Some(LeaseTerm { holder, ttl }) } }];
    assert!(is_done(&apply(&store, 1, &hold(1))));
    assert!(is_denied(&apply(&store, 2, &hold(2))));
    clock.advance(ttl);
    assert!(is_done(&apply(&store, 3, &hold(2))));
    let usage = Usage { at: START, reserved: &costs, used: &[0, 0], holder: Some(1) };
    apply(&store, 4, &[Step { place, op: Op::Settle(usage) }]);
    assert_eq!(available(&store, &place)[1], 0, "the first holder released what the second holds");
}

fn a_detached_call_is_applied<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["handed", "over"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 40, slots: 1 }).expect("it fits");
    assert!(is_done(&apply(&store, 1, &[take(place, &costs)])));
    let usage = Usage { at: START, reserved: &costs, used: &[0, 0], holder: None };
    store.apply_detached(&Transaction {
        id: None,
        steps: &[Step { place, op: Op::Settle(usage) }],
        metered: true,
    });
    // It may take a moment, after which all of it can be taken.
    let whole = limits.costs(&demand! { tpm: 100, slots: 2 }).expect("it fits");
    let mut id = 1;
    let is_applied = within_tries(|| {
        id += 1;
        is_done(&apply(&store, id, &[take(place, &whole)]))
    });
    assert!(is_applied, "a detached call is applied");
}

fn two_holders_are_never_the_same<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let ids = |_| (0..1_000).map(|_| store.new_holder_id()).collect::<Vec<u128>>();
    let mut all: Vec<u128> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || ids(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
    });
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4_000, "an id was given to two holders");
}

fn two_steps_for_one_bucket_are_refused<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (limits, key) = (limits(), Key::new(&["two", "steps"]));
    let place = place(&key, &limits);
    let costs = limits.costs(&demand! { tpm: 40 }).expect("it fits");
    let steps = [take(place, &costs), take(place, &costs)];
    let refused = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait();
    assert!(matches!(refused, Err(StoreError::BadCall(_))), "{refused:?}");
    assert_eq!(available(&store, &place), [100, 2]);
}

fn a_metered_key_has_two_parts<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let limits = limits();
    let costs = limits.costs(&demand! { tpm: 40 }).expect("it fits");
    for key in [Key::new(&["one"]), Key::new(&["one", "two", "three"])] {
        let steps = [take(place(&key, &limits), &costs)];
        let refused = store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait();
        assert!(matches!(refused, Err(StoreError::BadCall(_))), "{refused:?}");
    }
}

/// A custom limit, which no store can keep.
struct Own;

impl CustomLimit for Own {
    type State = ();

    fn capacity(&self) -> u64 {
        1
    }

    fn fresh(&self) {}

    fn ready(&self, (): &(), _: Tick, _: u64) -> Ready {
        Ready::Now
    }

    fn available(&self, (): &(), _: Tick) -> i64 {
        1
    }

    fn charge(&self, (): &mut (), _: Tick, _: u64) {}

    fn refund(&self, (): &mut (), _: Tick, _: Tick, _: u64) {}
}

fn a_custom_limit_is_refused<S: Store>(open: &impl Fn(Clock) -> S) {
    let store = open_at_start(open);
    let (ordinary, key) = (limits(), Key::new(&["custom"]));
    let custom = [Limit::per_minute("tpm", 100), Limit::resource("slots", 2), Limit::custom("own", Own)];
    let custom = Limits::new(custom).expect("they are valid");
    let costs = custom.costs(&demand! { tpm: 40, own: 1 }).expect("it fits");
    let steps = [take(place(&key, &custom), &costs)];
    let refused = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait();
    assert!(matches!(&refused, Err(StoreError::BadCall(why)) if why.contains("own")), "{refused:?}");
    assert_eq!(available(&store, &place(&key, &ordinary)), [100, 2]);
}
