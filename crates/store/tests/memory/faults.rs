//! The store that fails on purpose fails as it says.

use tollgate_core::Limit;
use tollgate_store::records::{Item, ItemKey, Query, Records, RecordsError, Write};
use tollgate_store::{
    Backend, Fault, FaultStore, Key, Memory, Op, Scope, Step, Store, StoreError, Transaction,
};

use crate::fixture::{each, is_taken, left, limits, memory, place, take};

fn failing_first(fault: Fault) -> FaultStore<Memory> {
    let (_hands, memory) = memory();
    FaultStore::new(memory, move |call| (call == 0).then_some(fault))
}

#[test]
fn a_lost_call_changes_nothing() {
    let store = failing_first(Fault::LoseCall);
    let limits = limits([Limit::per_day("calls", 10)]);
    let (key, one) = (Key::new(&["k"]), each(&limits, 1));
    let place = place(&key, &limits);
    assert!(matches!(take(&store, None, place, &one), Err(StoreError::Unavailable(..))));
    assert_eq!((left(store.inner(), place), store.inner().namespace("test").len()), (10, 0));
    assert!(is_taken(&take(&store, None, place, &one)));
    assert_eq!(store.calls(), 2);
}

#[test]
fn a_lost_reply_changes_what_its_call_changes_once() {
    let store = failing_first(Fault::LoseReply);
    let limits = limits([Limit::per_day("calls", 10)]);
    let (key, one) = (Key::new(&["k"]), each(&limits, 1));
    let place = place(&key, &limits);
    assert!(matches!(take(&store, None, place, &one), Err(StoreError::Unavailable(..))));
    assert_eq!(left(store.inner(), place), 9);
}

#[test]
fn an_error_of_the_store_itself_is_not_hidden_by_a_lost_reply() {
    let (_hands, memory) = crate::fixture::with_keys_max(0);
    let store = FaultStore::new(memory, |_| Some(Fault::LoseReply));
    let limits = limits([Limit::per_day("calls", 10)]);
    let error = take(&store, None, place(&Key::new(&["k"]), &limits), &each(&limits, 1)).unwrap_err();
    assert!(matches!(error, StoreError::NamespaceFull { .. }), "{error}");
}

#[test]
fn a_peek_that_fails_says_so_and_counts_as_a_call() {
    let store = failing_first(Fault::LoseReply);
    let limits = limits([Limit::per_day("calls", 10)]);
    let key = Key::new(&["k"]);
    let place = place(&key, &limits);
    assert!(matches!(store.peek(&place).wait(), Err(StoreError::Unavailable(..))));
    assert_eq!(store.peek(&place).wait().unwrap()[0].available(), 10);
    assert_eq!(store.calls(), 2);
}

#[test]
fn it_has_the_reach_and_the_clock_of_the_store_inside() {
    let (hands, memory) = memory();
    let reach = memory.reach();
    let store = FaultStore::new(memory, |_| None);
    assert_eq!((store.reach(), store.clock().now()), (reach, hands.now()));
}

#[test]
fn what_is_handed_over_is_lost_with_the_call_and_not_with_the_reply() {
    for (fault, left_after) in [(Fault::LoseCall, 10), (Fault::LoseReply, 9)] {
        let store = failing_first(fault);
        let limits = limits([Limit::per_day("calls", 10)]);
        let (key, one) = (Key::new(&["k"]), each(&limits, 1));
        let steps = [Step { place: place(&key, &limits), op: Op::Take { costs: &one, term: None } }];
        store.apply_detached(&Transaction { id: None, steps: &steps, metered: false });
        assert_eq!(left(store.inner(), place(&key, &limits)), left_after, "{fault:?}");
        assert_eq!(store.calls(), 1);
    }
}

#[test]
fn records_are_lost_like_calls() {
    let put = || [Write::Put(Item::new(ItemKey::new("ns/A", "1")), vec![])];
    for (fault, is_written) in [(Fault::LoseCall, false), (Fault::LoseReply, true)] {
        let store = failing_first(fault);
        let lost = store.write(&put()).wait();
        assert!(matches!(lost, Err(RecordsError::Store(StoreError::Unavailable(..)))), "{lost:?}");
        let found = store.inner().get_many(&[ItemKey::new("ns/A", "1")]).wait().unwrap();
        assert_eq!(found[0].is_some(), is_written, "{fault:?}");
        assert!(store.write(&put()).wait().is_ok(), "only the first one fails");
    }
}

#[test]
fn every_call_of_a_backend_may_fail() {
    let (_hands, memory) = memory();
    let store = FaultStore::new(memory, |_| Some(Fault::LoseCall));
    let (limits, key) = (limits([Limit::per_day("calls", 10)]), Key::new(&["k", "r"]));
    let one = each(&limits, 1);
    let steps = [Step { place: place(&key, &limits), op: Op::Take { costs: &one, term: None } }];
    let call = Transaction { id: None, steps: &steps, metered: true };
    let lost = [
        store.apply_with(&call, &[]).wait().is_err(),
        store.evaluate(&steps).wait().is_err(),
        store.buckets("test", Scope::All, None, 1).wait().is_err(),
        store.forget("test", Scope::All).wait().is_err(),
        store.close("test").wait().is_err(),
        store.write_usage("test", Scope::All).wait().is_err(),
        store.query(&Query::all("ns/A")).wait().is_err(),
        store.get_many(&[]).wait().is_err(),
    ];
    assert_eq!((lost, store.calls()), ([true; 8], 8));
    assert!(store.pin(&place(&key, &limits)).is_none(), "what is at hand is out of reach");
    assert!(store.inner().namespace("test").is_empty());
}
