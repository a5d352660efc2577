//! What callers get when something goes wrong on the way, and that a retry makes it unseen.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

mod common;

use std::time::Duration;

use common::{builder, engine};
use tollgate_core::Tick;
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo_local::{CallFault, Engine, Faults};
use tollgate_store::records::{Change, Index, Item, ItemKey, Query, Records, RecordsError, Test, Write};
use tollgate_store::{ManualClock, StoreError};

struct Scene {
    engine: Engine,
    faults: Faults,
    store: DynamoStore,
}

fn scene(tries: u32) -> Scene {
    let clock = ManualClock::at(Tick::from_secs(1_000_000)).clock();
    let engine = engine(&clock);
    let faults = Faults::new(engine.http_client());
    let builder = builder(clock).http_client(faults.clone()).tries(tries);
    let store = builder.timeout(Duration::from_secs(20)).build().wait().unwrap();
    Scene { engine, faults, store }
}

fn key(sort: &str) -> ItemKey {
    ItemKey::new("ns/A", sort)
}

fn add(sort: &str) -> Write {
    Write::Change(key(sort), vec![Change::Add("n".into(), 1)], vec![])
}

fn number(store: &DynamoStore, sort: &str) -> Option<i64> {
    store.get_many(&[key(sort)]).wait().unwrap()[0].as_ref().and_then(|item| item.int("n"))
}

/// What an error starts with that callers see.
fn told<T: std::fmt::Debug>(answer: Result<T, RecordsError>) -> (bool, String) {
    match answer {
        Err(RecordsError::Store(StoreError::Unavailable(_, why))) => (true, why),
        Err(RecordsError::Store(StoreError::Refused(why))) => (false, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_fault_is_told_for_what_it_is() {
    let Scene { faults, store, .. } = scene(1);
    let opened = store.error_counts();
    let passing = true;
    let reads = [
        (CallFault::Throttle, passing, "throttled"),
        (CallFault::ServerError, passing, "failed with status"),
        (CallFault::LostBefore, passing, "the connection to DynamoDB broke (connection reset by peer)"),
        (CallFault::AccessDenied, !passing, "no permission: User: arn"),
        (CallFault::MissingTable, !passing, "there is no table \"limits\""),
    ];
    for (fault, is_passing, text) in reads {
        faults.next(fault);
        let (unavailable, why) = told(store.get_many(&[key("1")]).wait());
        assert!(unavailable == is_passing && why.contains(text), "{fault:?}: {why}");
    }
    for turn in 0..3 {
        faults.next(CallFault::Throttle);
        let (_, why) = told(store.get_many(&[key("1")]).wait());
        assert!(why.contains("throttled"), "in way {turn}: {why}");
    }
    for _ in 0..2 {
        faults.next(CallFault::LostAfter);
        let (unavailable, why) = told(store.write(&[add("1")]).wait());
        assert!(unavailable && (why.contains("broke") || why.contains("in time")), "{why}");
    }
    let counted = store.error_counts();
    assert_eq!((counted.throttled, counted.server, counted.refused - opened.refused), (4, 1, 2));
    assert_eq!((counted.lost + counted.timeouts, counted.retries), (3, 0));
}

#[test]
fn a_fault_that_passes_is_not_seen() {
    let Scene { faults, store, .. } = scene(5);
    let passing = [CallFault::Throttle, CallFault::ServerError, CallFault::LostBefore, CallFault::LostAfter];
    for (round, fault) in passing.into_iter().enumerate() {
        faults.next(fault);
        faults.next(fault);
        store.write(&[add("n")]).wait().unwrap();
        faults.next(fault);
        assert_eq!(number(&store, "n"), Some(round as i64 + 1), "{fault:?}");
    }
    for _ in 0..30 {
        faults.next(CallFault::Conflict);
    }
    store.write(&[add("n"), add("m")]).wait().unwrap();
    assert_eq!(number(&store, "n"), Some(5), "conflicts are waited for");
    assert_eq!(store.error_counts().conflicts, 30);
    faults.next_of("PutItem", CallFault::Conflict);
    store.write(&[Write::Put(Item::new(key("p")), vec![])]).wait().unwrap();
}

#[test]
fn a_lost_answer_is_neither_applied_nor_told_twice() {
    let Scene { faults, store, .. } = scene(5);
    let make = Write::Put(Item::new(key("1")).with("n", 1), vec![Test::Absent]);
    faults.next(CallFault::LostAfter);
    assert_eq!(
        store.write(std::slice::from_ref(&make)).wait(),
        Ok(()),
        "it was made by the try that was lost"
    );
    faults.next(CallFault::LostAfter);
    assert_eq!(store.write(&[make]).wait(), Err(RecordsError::Failed(0)));
    let bounded =
        Write::Change(key("2"), vec![Change::Add("n".into(), 1)], vec![Test::AtMost("n".into(), 0)]);
    for _ in 0..2 {
        faults.next(CallFault::LostAfter);
    }
    assert_eq!(store.write(&[bounded]).wait(), Ok(()));
    assert_eq!(number(&store, "2"), Some(1));
}

#[test]
fn keys_that_were_left_undone_are_asked_for_again() {
    let Scene { faults, store, .. } = scene(3);
    let items: Vec<Write> = (0..20)
        .map(|number| Item::new(key(&number.to_string())).indexed(Index::Custom, "ns/C", number.to_string()))
        .map(|item| Write::Put(item, vec![]))
        .collect();
    store.write(&items).wait().unwrap();
    for _ in 0..6 {
        faults.next(CallFault::Unprocessed);
    }
    let found = store.find(Index::Custom, &Query::all("ns/C")).wait().unwrap();
    assert_eq!(found.items.len(), 20);
    // 20 keys are halved until the last of them is asked for alone, and left undone as well.
    assert_eq!(store.error_counts().unprocessed, 6);
}

#[test]
fn a_stale_index_hides_nothing_that_is_gone() {
    let Scene { faults, store, .. } = scene(3);
    let item = Item::new(key("1")).indexed(Index::Custom, "ns/C", "1");
    store.write(&[Write::Put(item.clone(), vec![])]).wait().unwrap();
    let find = || store.find(Index::Custom, &Query::all("ns/C")).wait().unwrap().items;
    // Answers are remembered while a stale one is wanted, and this one is never used up.
    faults.next_of("Scan", CallFault::StaleRead);
    assert_eq!(find(), [key("1")]);
    store.write(&[Write::Delete(key("1"), vec![])]).wait().unwrap();
    faults.next_of("Query", CallFault::StaleRead);
    assert_eq!(find(), [], "the index still has it, and the table has not");
}

#[test]
fn a_plain_write_costs_one_call_and_one_unit() {
    let Scene { engine, store, .. } = scene(3);
    let before = engine.calls();
    store.write(&[Write::Put(Item::new(key("1")), vec![])]).wait().unwrap();
    store.write(&[Write::Delete(key("1"), vec![])]).wait().unwrap();
    store.write(&[Write::Check(key("1"), vec![Test::Absent])]).wait().unwrap();
    store.get_many(&[key("1"), key("1")]).wait().unwrap();
    store.get_many(&[key("1"), key("2")]).wait().unwrap();
    let calls = engine.calls() - before;
    assert_eq!((calls.of("PutItem"), calls.of("DeleteItem"), calls.writes()), (1, 1, 2));
    assert_eq!((calls.of("GetItem"), calls.of("TransactGetItems"), calls.reads()), (2, 1, 3));
}

#[test]
fn what_is_too_slow_is_told_within_the_timeout() {
    let clock = ManualClock::at(Tick::from_secs(1_000_000)).clock();
    let engine = engine(&clock);
    let faults = Faults::new(engine.http_client());
    let builder = builder(clock).http_client(faults.clone()).timeout(Duration::from_millis(300));
    let store = builder.build().wait().unwrap();
    for _ in 0..5 {
        faults.next(CallFault::Slow(Duration::from_secs(60)));
    }
    let answer = store.get_many(&[key("1")]).wait();
    let Err(RecordsError::Store(StoreError::Unavailable(waited, why))) = answer else { panic!("{answer:?}") };
    assert!(why.contains("in time") && waited >= Duration::from_millis(250), "{waited:?} {why}");
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}
