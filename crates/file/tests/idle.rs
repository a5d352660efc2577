//! What says nothing any more does not pile up, and what is denied leaves no trace.

mod support;

use rusqlite::Connection;
use support::{Folder, START, Tap, open_at};
use tollgate_core::Span;
use tollgate_store::records::{Query, Records};
use tollgate_store::{ManualClock, Op, OpId, Step, Store, Transaction};

const A_DAY: Span = Span::from_secs(86_400);

fn rows(folder: &Folder, table: &str) -> i64 {
    let file = Connection::open(folder.file("x")).expect("the file can be opened");
    file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("it can be read")
}

#[test]
fn buckets_that_lie_idle_are_forgotten_as_others_come() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    for user in 0..100 {
        assert!(Tap::new(&store, &format!("old-{user}")).take(1, 0));
    }
    assert!(Tap::new(&store, "in use").take(0, 1));
    hands.advance(A_DAY);
    for user in 0..60 {
        assert!(Tap::new(&store, &format!("other-{user}")).take(1, 0));
    }
    assert_eq!(rows(&folder, "bucket"), 161, "a day is not more than a day");
    hands.advance(Span::from_secs(1));
    for user in 0..150 {
        assert!(Tap::new(&store, &format!("new-{user}")).take(1, 0));
    }
    assert_eq!(rows(&folder, "bucket"), 60 + 150 + 1);
    assert_eq!(Tap::new(&store, "in use").left(), [100, 1]);
}

#[test]
fn usage_of_a_bucket_that_is_forgotten_is_written_down() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "old");
    let costs = tap.costs(30, 0);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap();
    let usage = || store.query(&Query::prefix("tests/USAGE#old", "#USAGE#")).wait().unwrap().items;
    assert!(usage().is_empty());
    hands.advance(Span::from_secs(2 * 86_400));
    for user in 0..5 {
        assert!(Tap::new(&store, &format!("new-{user}")).take(1, 0));
    }
    let written = usage();
    assert_eq!(written.len(), 3);
    assert!(written.iter().all(|item| item.int("tpm") == Some(30)), "{written:?}");
}

#[test]
fn calls_are_remembered_for_a_day_and_then_forgotten_as_others_come() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let costs = tap.costs(0, 0);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    let send = |id: u128| {
        let call = Transaction { id: Some(OpId(id)), steps: &steps, metered: false };
        store.apply(&call).wait().unwrap();
    };
    (0..100).for_each(send);
    hands.advance(A_DAY);
    (1_000..1_060).for_each(send);
    assert_eq!(rows(&folder, "applied"), 160);
    hands.advance(Span::from_secs(1));
    (2_000..2_150).for_each(send);
    assert_eq!(rows(&folder, "applied"), 60 + 150);
}

#[test]
fn a_call_that_is_denied_writes_nothing_at_all() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let (tap, newcomer) = (Tap::new(&store, "user"), Tap::new(&store, "newcomer"));
    assert!(tap.take(100, 2));
    let file = Connection::open(folder.file("x")).unwrap();
    let version = || -> i64 { file.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap() };
    let before = version();
    let (one, all) = (tap.costs(1, 0), newcomer.costs(1, 0));
    for id in [None, Some(OpId(1))] {
        let steps = [
            Step { place: newcomer.place(), op: Op::Take { costs: &all, term: None } },
            Step { place: tap.place(), op: Op::Take { costs: &one, term: None } },
        ];
        let applied = store.apply(&Transaction { id, steps: &steps, metered: true }).wait().unwrap();
        assert!(matches!(applied, tollgate_store::TxnOutcome::Denied(denials) if denials.len() == 2));
    }
    assert_eq!(version(), before);
    assert_eq!((rows(&folder, "bucket"), rows(&folder, "applied")), (1, 0));
}
