//! A store on a file in processes that are forked off. It is tested here because only this crate may call `fork`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use support::Folder;
use support::fork::{Board, End, fork, one_at_a_time};
use tollgate_core::{Limit, Limits, Usage, demand};
use tollgate_file::FileStore;
use tollgate_store::{BucketRef, Key, Op, Step, Store, StoreError, Transaction, TxnOutcome};

const QUOTA: u64 = 100;

/// What is for a year is not used up by time.
struct Purse {
    limits: Limits,
    key: Key,
}

impl Purse {
    fn new() -> Purse {
        let quota = Limit::quota("spend", QUOTA, Duration::from_secs(86_400 * 365));
        Purse { limits: Limits::new([quota]).unwrap(), key: Key::new(&["all", "spend"]) }
    }

    fn place(&self) -> BucketRef<'_> {
        BucketRef { namespace: "tests", key: &self.key, limits: &self.limits }
    }

    fn spend(&self, store: &FileStore, amount: u64) -> Result<bool, StoreError> {
        let costs = self.limits.costs(&demand! { spend: amount }).unwrap();
        let steps = [Step { place: self.place(), op: Op::Take { costs: &costs, term: None } }];
        let applied = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()?;
        Ok(matches!(applied, TxnOutcome::Done(_)))
    }

    /// Charges more, and does not wait for it.
    fn charge(&self, store: &FileStore, amount: i64) {
        let reserved = self.limits.costs(&demand! { spend: 0 }).unwrap();
        let usage =
            Usage { at: store.clock().now(), reserved: &reserved, used: &[amount as u64], holder: None };
        let steps = [Step { place: self.place(), op: Op::Settle(usage) }];
        store.apply_detached(&Transaction { id: None, steps: &steps, metered: false });
    }

    fn left(&self, store: &FileStore) -> i64 {
        store.peek(&self.place()).wait().unwrap()[0].available()
    }
}

fn wait_for(board: &Board, word: usize) {
    for _ in 0..60_000 {
        if board[word].load(Ordering::Acquire) != 0 {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("the other process does not get there");
}

#[test]
fn a_child_takes_from_the_file_that_its_parent_opened() {
    let _forking = one_at_a_time();
    let (folder, purse) = (Folder::new(), Purse::new());
    let store = FileStore::open(folder.path().join("x")).unwrap();
    assert!(purse.spend(&store, 60).unwrap());
    let child = fork(|| {
        assert_eq!(purse.left(&store), 40);
        assert!(purse.spend(&store, 30).unwrap());
        assert!(!purse.spend(&store, 11).unwrap());
        // Its own threads make detached calls, and its own child has such threads, too.
        purse.charge(&store, 1);
        let grandchild = fork(|| assert!(purse.spend(&store, 2).unwrap()));
        assert_eq!(grandchild.end(), End::Code(0));
        // A process that ends takes its threads with it.
        while purse.left(&store) != 7 {
            std::thread::yield_now();
        }
    });
    assert_eq!(child.end(), End::Code(0));
    assert_eq!(purse.left(&store), 7);
    assert!(purse.spend(&store, 7).unwrap());
    assert_eq!(store.check().wait(), Ok(()));
}

#[test]
fn what_a_child_takes_holds_after_its_parent_has_closed_the_file() {
    let _forking = one_at_a_time();
    let (folder, purse, board) = (Folder::new(), Purse::new(), Board::new(2));
    let path = folder.path().join("x");
    let store = FileStore::open(&path).unwrap();
    assert!(purse.spend(&store, 10).unwrap());
    let child = fork(|| {
        assert!(purse.spend(&store, 10).unwrap());
        board[0].store(1, Ordering::Release);
        wait_for(&board, 1);
        assert!(purse.spend(&store, 10).unwrap());
        // Another one who opens it sees what was taken, while the child has it open.
        let other = FileStore::open(&path).unwrap();
        assert_eq!(purse.left(&other), 70);
        assert!(purse.spend(&other, 10).unwrap());
        assert_eq!(purse.left(&store), 60);
    });
    wait_for(&board, 0);
    // If the child did not have its own locks, that would delete the log.
    drop(store);
    board[1].store(1, Ordering::Release);
    assert_eq!(child.end(), End::Code(0));
    let store = FileStore::open(&path).unwrap();
    assert_eq!(purse.left(&store), 60);
    assert_eq!(store.check().wait(), Ok(()));
}

#[test]
fn a_child_that_drops_the_store_leaves_that_of_its_parent_alone() {
    let _forking = one_at_a_time();
    let (folder, purse) = (Folder::new(), Purse::new());
    let path = folder.path().join("x");
    let store = FileStore::open(&path).unwrap();
    assert!(purse.spend(&store, 10).unwrap());
    let mut copy = Some(store.clone());
    let child = fork(|| {
        drop(copy.take());
        let own = FileStore::open(&path).unwrap();
        assert!(purse.spend(&own, 10).unwrap());
        drop(own);
        assert!(purse.spend(&store, 10).unwrap());
    });
    assert_eq!(child.end(), End::Code(0));
    assert_eq!(purse.left(&store), 70);
    assert!(purse.spend(&store, 10).unwrap());
}

#[test]
fn a_child_makes_no_new_file_for_one_that_was_deleted() {
    let _forking = one_at_a_time();
    let (folder, purse) = (Folder::new(), Purse::new());
    let path = folder.path().join("x");
    let store = FileStore::open(&path).unwrap();
    assert!(purse.spend(&store, 10).unwrap());
    std::fs::remove_file(&path).unwrap();
    let child = fork(|| {
        let refused = purse.spend(&store, 10);
        assert!(matches!(&refused, Err(StoreError::Refused(why)) if why.contains("deleted")), "{refused:?}");
    });
    assert_eq!(child.end(), End::Code(0));
    assert!(!path.exists());
}
