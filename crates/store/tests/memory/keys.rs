//! How many keys there may be, and which of them make room.

use std::sync::Arc;

use tollgate_core::{Limit, Limits, Span};
use tollgate_store::{BucketRef, Key, Memory, Priority, StoreError};

use crate::fixture::{START, each, is_taken, limits, memory, place, take, together, with_keys_max};

fn key(number: usize) -> Key {
    Key::new(&["key", &number.to_string()])
}

fn per_second() -> Limits {
    limits([Limit::per_second("calls", 1)])
}

fn fill(memory: &Memory, limits: &Limits, keys: usize) {
    for number in 0..keys {
        assert!(is_taken(&take(memory, None, place(&key(number), limits), &each(limits, 1))));
    }
}

#[test]
fn a_full_namespace_refuses_new_keys_and_serves_the_old() {
    let (_hands, memory) = with_keys_max(10);
    let limits = per_second();
    let one = each(&limits, 1);
    fill(&memory, &limits, 10);
    let error = take(&memory, None, place(&key(10), &limits), &one).unwrap_err();
    assert_eq!(error, StoreError::NamespaceFull { namespace: "test".into(), keys_max: 10 });
    assert!(memory.cell(&place(&key(11), &limits)).is_err());
    assert_eq!(memory.namespace("test").len(), 10);
    assert!(crate::fixture::is_denied(&take(&memory, None, place(&key(3), &limits), &one)));
}

#[test]
fn an_idle_key_makes_room_wherever_it_is() {
    for round in 0..200 {
        let (hands, memory) = with_keys_max(10);
        let (short, long) = (per_second(), limits([Limit::per_day("calls", 1)]));
        for number in 0..10 {
            let limits = if number == round % 10 { &short } else { &long };
            take(&memory, None, place(&key(number), limits), &each(limits, 1)).unwrap();
        }
        hands.advance(Span::from_secs(1));
        let newcomer = take(&memory, None, place(&key(100), &long), &each(&long, 1));
        assert!(is_taken(&newcomer), "round {round}: {newcomer:?}");
        assert_eq!(memory.namespace("test").len(), 10);
        assert!(take(&memory, None, place(&key(101), &long), &each(&long, 1)).is_err());
    }
}

#[test]
fn one_namespace_cannot_push_out_another() {
    let (hands, memory) = with_keys_max(10);
    let limits = per_second();
    let one = each(&limits, 1);
    fill(&memory, &limits, 10);
    // Even when all of it is idle, nothing of it is dropped for a key of another namespace.
    hands.advance(Span::from_secs(1));
    for number in 0..10 {
        let foreign = key(number);
        let other = BucketRef { namespace: "other", key: &foreign, limits: &limits };
        assert!(is_taken(&take(&memory, None, other, &one)));
    }
    assert_eq!((memory.namespace("test").len(), memory.namespace("other").len()), (10, 10));
}

#[test]
fn a_full_namespace_never_has_more_keys_than_it_may_however_many_threads_ask() {
    let (_hands, memory) = with_keys_max(100);
    let limits = per_second();
    let admitted = together(8, |thread| {
        let tries = (0..50).map(|number| {
            let key = Key::new(&[thread.to_string(), number.to_string()]);
            take(&memory, None, place(&key, &limits), &each(&limits, 1)).is_ok()
        });
        tries.filter(|admitted| *admitted).count()
    });
    assert_eq!(admitted.into_iter().sum::<usize>(), 100);
    assert_eq!(memory.namespace("test").len(), 100);
}

#[test]
fn a_cell_that_somebody_has_survives_every_sweep() {
    let (hands, memory) = memory();
    let limits = per_second();
    let cell = memory.cell(&place(&key(0), &limits)).unwrap();
    let space = memory.namespace("test");
    for _ in 0..10 {
        hands.advance(Span::from_secs(3_600));
        assert_eq!(space.sweep(hands.now()), 0);
    }
    assert!(Arc::ptr_eq(&cell, &space.find(&key(0)).unwrap()), "another bucket under one key");
    drop(cell);
    assert_eq!((space.sweep(hands.now()), space.len()), (1, 0));
    assert!(space.find(&key(0)).is_none());
}

#[test]
fn a_cell_that_somebody_has_does_not_make_room() {
    let (_hands, memory) = with_keys_max(1);
    let limits = per_second();
    let cell = memory.cell(&place(&key(0), &limits)).unwrap();
    assert!(memory.cell(&place(&key(1), &limits)).is_err());
    drop(cell);
    memory.cell(&place(&key(1), &limits)).unwrap();
}

#[test]
fn a_cooldown_is_not_forgotten() {
    let (hands, memory) = memory();
    let limits = per_second();
    let until = START + Span::from_secs(60);
    memory.cell(&place(&key(0), &limits)).unwrap().cool_down(&hands.clock(), until);
    let space = memory.namespace("test");
    assert_eq!(space.sweep(START), 0);
    hands.set(until);
    assert_eq!(space.sweep(until), 1);
}

#[test]
fn a_hundred_thousand_keys_that_are_full_again_leave_nothing() {
    let (hands, memory) = memory();
    let limits = per_second();
    let one = each(&limits, 1);
    let (space, clock) = (memory.namespace("test"), hands.clock());
    for number in 0..100_000 {
        space
            .try_take(&clock, &["key", &number.to_string()], &limits, &one, Priority::default())
            .unwrap()
            .unwrap();
    }
    assert_eq!((space.len(), space.sweep(START)), (100_000, 0));
    hands.advance(Span::from_secs(1));
    assert_eq!((space.sweep(hands.now()), space.len()), (100_000, 0));
    assert!(space.is_empty());
}

#[test]
fn keys_that_come_and_go_stay_few_without_a_sweep() {
    let (hands, memory) = memory();
    let limits = per_second();
    let one = each(&limits, 1);
    let (space, clock) = (memory.namespace("test"), hands.clock());
    for number in 0..100_000 {
        space
            .try_take(&clock, &["key", &number.to_string()], &limits, &one, Priority::default())
            .unwrap()
            .unwrap();
        hands.advance(Span::from_millis(1));
    }
    // A thousand are in use at any time; each new key looks at two places.
    assert!(space.len() < 10_000, "{} keys are kept", space.len());
}
