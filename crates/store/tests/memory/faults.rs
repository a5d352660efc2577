//! The store that fails on purpose fails as it says.

use tollgate_core::Limit;
use tollgate_store::{Fault, FaultStore, Key, Memory, Store, StoreError};

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
    assert_eq!((left(store.inner(), place), store.inner().space("test").len()), (10, 0));
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
