//! A process that is killed at any instant leaves the file whole, and nothing that was answered is forgotten.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use support::Folder;
use support::child::{self, Process};
use tollgate_core::{AMOUNT_MAX, Limit, Limits, demand};
use tollgate_file::FileStore;
use tollgate_store::records::{Change, ItemKey, Records, Write};
use tollgate_store::{Backend, BucketRef, Key, Op, Step, Store, Transaction, TxnOutcome};

const ROUNDS: u64 = 30;
const THREADS: u64 = 4;

fn limits() -> Limits {
    Limits::new([Limit::quota("calls", AMOUNT_MAX, Duration::from_secs(86_400 * 365))]).expect("it is valid")
}

fn counter() -> ItemKey {
    ItemKey::new("tests/COUNTER", "#ALL")
}

#[test]
fn nothing_that_was_answered_is_forgotten_by_a_kill() {
    let folder = Folder::new();
    let file = folder.file("x");
    let mut answered = 0;
    let mut most = 0;
    for round in 0..ROUNDS {
        let mut victim = Process::start("one_who_is_killed", "write", &file);
        // It is hit while it opens the file, while it is at work, and everywhere in between.
        for _ in 0..round * 7 % 90 {
            victim.hears();
        }
        (0..round * 131_071 % 2_000_000).for_each(|_| std::hint::spin_loop());
        answered += victim.kill().len() as u64 + round * 7 % 90;
        most += THREADS;

        let whole: String = Connection::open(&file)
            .unwrap()
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(whole, "ok", "round {round}");
        let store = FileStore::open(&file).unwrap();
        let (limits, key) = (limits(), Key::new(&["all", "calls"]));
        let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
        let left = store.peek(&place).wait().unwrap()[0].available();
        let taken = AMOUNT_MAX - u64::try_from(left).unwrap();
        assert!(taken >= answered, "round {round}: {answered} were answered and {taken} are taken");
        assert!(taken <= answered + most, "round {round}: {answered} were answered and {taken} are taken");
        let counted = store.get_many(&[counter()]).wait().unwrap().remove(0);
        let counted = counted.map_or(0, |item| item.int("calls").unwrap());
        assert_eq!(counted as u64, taken, "round {round}: records and buckets change together");
    }
}

#[test]
fn one_who_is_killed() {
    let Some((_, file)) = child::role() else { return };
    let store = FileStore::open(file).unwrap();
    let calls = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let (limits, key) = (limits(), Key::new(&["all", "calls"]));
                let costs = limits.costs(&demand! { calls: 1 }).unwrap();
                let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
                let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
                let count = [Write::Change(counter(), vec![Change::Add("calls".into(), 1)], Vec::new())];
                loop {
                    let call = Transaction { id: None, steps: &steps, metered: true };
                    let applied = store.apply_with(&call, &count).wait().unwrap();
                    assert!(matches!(applied, TxnOutcome::Done(_)));
                    child::say(&calls.fetch_add(1, Ordering::Relaxed).to_string());
                }
            });
        }
    });
}
