//! A call with an id is applied at most once.

use tollgate_core::{Limit, Span};
use tollgate_store::{Fault, FaultStore, Key, StoreError};

use crate::fixture::{each, give_back, is_denied, is_taken, left, limits, memory, place, take, together};

#[test]
fn a_call_that_is_sent_again_after_its_reply_was_lost_charges_once() {
    let (_hands, memory) = memory();
    // Every other reply is lost.
    let store = FaultStore::new(memory, |call| (call % 2 == 0).then_some(Fault::LoseReply));
    let limits = limits([Limit::per_day("calls", 100)]);
    let (key, three) = (Key::new(&["k"]), each(&limits, 3));
    for id in 0..10 {
        let place = place(&key, &limits);
        let lost = take(&store, Some(id), place, &three);
        assert!(matches!(lost, Err(StoreError::Unavailable(..))), "{lost:?}");
        assert!(is_taken(&take(&store, Some(id), place, &three)));
        assert_eq!(left(store.inner(), place), 100 - 3 * (id as i64 + 1));
    }
}

#[test]
fn a_settlement_that_is_sent_again_gives_back_once() {
    let (_hands, memory) = memory();
    let store = FaultStore::new(memory, |call| (call == 1).then_some(Fault::LoseReply));
    let limits = limits([Limit::resource("slots", 5)]);
    let (key, two) = (Key::new(&["k"]), each(&limits, 2));
    let place = place(&key, &limits);
    take(&store, None, place, &each(&limits, 5)).unwrap();
    assert!(give_back(&store, Some(7), place, &two).is_err());
    give_back(&store, Some(7), place, &two).unwrap();
    give_back(&store, Some(7), place, &two).unwrap();
    assert_eq!(left(store.inner(), place), 2);
}

#[test]
fn without_an_id_every_copy_is_applied() {
    let (_hands, memory) = memory();
    let limits = limits([Limit::per_day("calls", 10)]);
    let key = Key::new(&["k"]);
    for _ in 0..3 {
        take(&memory, None, place(&key, &limits), &each(&limits, 1)).unwrap();
    }
    assert_eq!(left(&memory, place(&key, &limits)), 7);
}

#[test]
fn copies_that_come_at_once_from_many_threads_charge_once() {
    let (_hands, memory) = memory();
    let limits = limits([Limit::per_day("calls", 1_000)]);
    let (key, one) = (Key::new(&["k"]), each(&limits, 1));
    for id in 0..200 {
        let answers = together(4, |_| take(&memory, Some(id), place(&key, &limits), &one).unwrap());
        assert!(answers.iter().all(|answer| *answer == answers[0]), "all copies hear the same");
    }
    assert_eq!(left(&memory, place(&key, &limits)), 800);
}

#[test]
fn a_denial_is_not_remembered() {
    let (hands, memory) = memory();
    let limits = limits([Limit::per_second("calls", 1)]);
    let (key, one) = (Key::new(&["k"]), each(&limits, 1));
    let place = place(&key, &limits);
    take(&memory, Some(1), place, &one).unwrap();
    assert!(is_denied(&take(&memory, Some(2), place, &one)));
    hands.advance(Span::from_secs(1));
    assert!(is_taken(&take(&memory, Some(2), place, &one)));
    assert!(is_taken(&take(&memory, Some(2), place, &one)), "a copy of what was admitted");
    assert_eq!(left(&memory, place), 0);
}

#[test]
fn ids_are_remembered_for_ten_minutes() {
    let (hands, memory) = memory();
    let limits = limits([Limit::resource("slots", 10)]);
    let (key, one) = (Key::new(&["k"]), each(&limits, 1));
    let place = place(&key, &limits);
    take(&memory, Some(1), place, &one).unwrap();
    hands.advance(Span::from_micros(599_999_999));
    take(&memory, Some(1), place, &one).unwrap();
    take(&memory, Some(2), place, &one).unwrap();
    assert_eq!(left(&memory, place), 8, "a copy in time is not charged");
    hands.advance(Span::from_micros(1));
    take(&memory, Some(3), place, &one).unwrap();
    take(&memory, Some(1), place, &one).unwrap();
    assert_eq!(left(&memory, place), 6, "whoever asks that late asks anew");
    take(&memory, Some(2), place, &one).unwrap();
    assert_eq!(left(&memory, place), 6, "the second is not as old");
}

#[test]
fn no_more_than_a_hundred_thousand_ids_are_remembered() {
    const REMEMBERED_MAX: u128 = 100_000;
    let (_hands, memory) = memory();
    let limits = limits([Limit::per_day("calls", 1_000_000)]);
    let (key, one) = (Key::new(&["k"]), each(&limits, 1));
    let place = place(&key, &limits);
    for id in 0..=REMEMBERED_MAX {
        take(&memory, Some(id), place, &one).unwrap();
    }
    let charged = || 1_000_000 - left(&memory, place);
    assert_eq!(charged(), 100_001);
    take(&memory, Some(1), place, &one).unwrap();
    assert_eq!(charged(), 100_001, "the oldest that is remembered");
    take(&memory, Some(0), place, &one).unwrap();
    assert_eq!(charged(), 100_002, "one more than are remembered");
}
