//! One file, several who use it: handles of one process, and processes.

mod support;

use std::time::Duration;

use rusqlite::Connection;
use support::child::{self, Process};
use support::{Folder, START, Tap, open_at};
use tollgate_core::{Limit, Limits, demand};
use tollgate_file::{Durability, FileStore};
use tollgate_store::records::{Item, ItemKey, Records, RecordsError, Test, Write};
use tollgate_store::{
    BucketRef, Key, ManualClock, Op, OpId, Step, Store, StoreError, Transaction, TxnOutcome,
};

#[test]
fn two_handles_on_one_file_are_one_store() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let one = open_at(&folder.file("x"), &hands);
    let two = open_at(&folder.file("x"), &hands);
    let (here, there) = (Tap::new(&one, "user"), Tap::new(&two, "user"));
    assert!(here.take(60, 1));
    assert_eq!(there.left(), [40, 1]);
    assert!(there.take(40, 1));
    assert!(!here.take(1, 0));
    here.give_back(START, 60, 1);
    assert_eq!(there.left(), [60, 1]);

    let item = Item::new(ItemKey::new("tests/ENTITY#a", "#META"));
    let make = [Write::Put(item.clone(), vec![Test::Absent])];
    one.write(&make).wait().unwrap();
    assert_eq!(two.write(&make).wait(), Err(RecordsError::Failed(0)));

    let costs = here.costs(5, 0);
    let steps = [Step { place: here.place(), op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: Some(OpId(1)), steps: &steps, metered: false };
    assert_eq!(one.apply(&call).wait().unwrap(), two.apply(&call).wait().unwrap());
    assert_eq!(there.left(), [55, 1]);
}

const QUOTA: u64 = 400;

/// A thousand for a day: whatever the clock says, it is not used up by time.
struct Purse {
    limits: Limits,
    key: Key,
}

impl Purse {
    fn new() -> Purse {
        let quota = Limit::quota("spend", QUOTA, Duration::from_secs(86_400));
        Purse { limits: Limits::new([quota]).expect("it is valid"), key: Key::new(&["all", "spend"]) }
    }

    fn spend(&self, store: &FileStore) -> Result<bool, StoreError> {
        let costs = self.limits.costs(&demand! { spend: 1 }).expect("it fits");
        let place = BucketRef { namespace: "tests", key: &self.key, limits: &self.limits };
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        let applied = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()?;
        Ok(matches!(applied, TxnOutcome::Done(_)))
    }

    /// Spends until it is empty, and answers how much.
    fn spend_all(&self, store: &FileStore) -> u64 {
        std::iter::from_fn(|| self.spend(store).expect("the store answers").then_some(1)).sum()
    }
}

#[test]
fn many_threads_on_many_handles_never_take_too_much() {
    let folder = Folder::new();
    let open = || FileStore::builder(folder.file("x")).durability(Durability::Off).build().unwrap();
    let (stores, purse) = ([open(), open(), open()], Purse::new());
    let spent: u64 = std::thread::scope(|scope| {
        let spend = |store: usize| {
            let (store, purse) = (&stores[store], &purse);
            scope.spawn(move || purse.spend_all(store))
        };
        let threads: Vec<_> = (0..12).map(|thread| spend(thread % 3)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(spent, QUOTA);
}

#[test]
fn processes_share_what_there_is_and_never_take_too_much() {
    let folder = Folder::new();
    let file = folder.file("x");
    let mut others: Vec<_> = (0..3).map(|_| Process::start("another_process", "spend", &file)).collect();
    let store = FileStore::open(&file).unwrap();
    let here = Purse::new().spend_all(&store);
    let spent = |other: &mut Process| other.hears().unwrap().parse::<u64>().unwrap();
    let there: Vec<u64> = others.iter_mut().map(spent).collect();
    assert_eq!(here + there.iter().sum::<u64>(), QUOTA, "{here} here, {there:?} there");
}

#[test]
fn a_neighbour_that_never_rests_leaves_room_for_others() {
    let folder = Folder::new();
    let file = folder.file("x");
    let mut neighbour = Process::start("another_process", "hammer", &file);
    assert_eq!(neighbour.hears().as_deref(), Some("hammering"));
    let store = FileStore::open(&file).unwrap();
    for turn in 0..50 {
        assert!(Tap::new(&store, &format!("user-{turn}")).try_take(1, 0, None).unwrap());
    }
    neighbour.kill();
}

/// What another process does.
#[test]
fn another_process() {
    let Some((role, file)) = child::role() else { return };
    let store = FileStore::builder(file).durability(Durability::Full).build().unwrap();
    if role == "spend" {
        return child::say(&Purse::new().spend_all(&store).to_string());
    }
    child::say("hammering");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let tap = Tap::new(store, &format!("thread-{thread}"));
                loop {
                    tap.take(1, 0);
                }
            });
        }
    });
}

#[test]
fn a_lock_of_another_is_waited_for_and_then_the_store_is_unavailable() {
    let folder = Folder::new();
    let timeout = Duration::from_millis(30);
    let store = FileStore::builder(folder.file("x")).timeout(timeout).build().unwrap();
    let tap = Tap::new(&store, "user");
    assert!(tap.take(10, 0));
    let other = Connection::open(folder.file("x")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let Err(StoreError::Unavailable(waited, why)) = tap.try_take(10, 0, None) else { panic!("it is locked") };
    assert_eq!(waited, timeout);
    assert!(why.contains("another process"), "{why}");
    assert_eq!(tap.left().len(), 2, "who only reads does not wait");
    other.execute_batch("COMMIT").unwrap();
    assert!(tap.take(10, 0));
}
