//! A memory that can grow no more: everything is refused whole, and goes on when there is room.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::process::Command;

use support::fork::{End, fork, one_at_a_time};
use support::{Folder, Tap, open};
use tollgate_shm::{ShmOpenError, ShmStore};
use tollgate_store::records::{Item, ItemKey, Records, RecordsError, Write};
use tollgate_store::{Backend, Op, Scope, Step, StoreError, Transaction};

/// Takes from one new bucket after another, until there is no room for one.
fn fill(store: &ShmStore) -> usize {
    for user in 0..1_000_000 {
        match Tap::new(store, &format!("user {user}")).try_take(1, 0, None) {
            Ok(taken) => assert!(taken),
            Err(StoreError::Unavailable(_, why)) => {
                assert!(why.contains("no room"), "{why}");
                return user;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it never becomes full");
}

/// A full store refuses whole, and goes on when there is room.
fn check_full(store: &ShmStore) {
    let made = fill(store);
    assert!(made > 10, "{made}");
    store.check().unwrap();
    let tap = Tap::new(store, "user 0");
    assert!(tap.take(1, 0), "a bucket that is there needs no more room");
    let left = tap.left();
    let big = Item::new(ItemKey::new("tests/ENTITY#a", "#META")).with("text", "x".repeat(1_000_000));
    let (costs, writes) = (tap.costs(10, 0), [Write::Put(big.clone(), Vec::new())]);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    let refused = store.apply_with(&Transaction { id: None, steps: &steps, metered: false }, &writes).wait();
    assert!(matches!(refused, Err(RecordsError::Store(StoreError::Unavailable(..)))), "{refused:?}");
    assert_eq!(tap.left(), left, "nothing is left of what was refused");
    assert_eq!(store.get_many(&[big.key]).wait().unwrap(), [None]);
    assert!(store.forget("tests", Scope::All).wait().unwrap() > 10);
    assert!(Tap::new(store, "newcomer").take(1, 0), "what was forgotten makes room");
    store.check().unwrap();
}

#[test]
fn a_store_at_its_capacity_says_so_and_goes_on_when_there_is_room() {
    let folder = Folder::new();
    let store = ShmStore::builder("x").folder(folder.path()).capacity(1_500_000).build().unwrap();
    check_full(&store);
    assert!(std::fs::metadata(store.path()).unwrap().len() <= 1_500_000);
    // The process that made it has decided.
    let other = ShmStore::builder("x").folder(folder.path()).capacity(1 << 30).build().unwrap();
    fill(&other);
}

#[test]
fn a_bound_on_the_size_of_files_is_an_error_and_not_a_signal() {
    let _alone = one_at_a_time();
    let folder = Folder::new();
    let bounded = fork(|| {
        let bound = |bytes: u64| {
            let bound = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: it only reads what it is given.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &bound) }, 0);
        };
        bound(1_000_000);
        let error = ShmStore::builder("x").folder(folder.path()).build().unwrap_err();
        assert!(matches!(error, ShmOpenError::NoRoom(_)), "{error}");
        bound(1_600_000);
        check_full(&open(folder.path()));
    });
    assert_eq!(bounded.end(), End::Code(0));
}

/// A file system of its own, which is gone at the end of the test.
struct Mounted(Folder);

impl Mounted {
    /// `None` if this process may mount nothing.
    fn new(kilobytes: u64) -> Option<Mounted> {
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "none"]).arg(folder.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Mounted(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_file_system_is_an_error_and_not_a_signal() {
    let _alone = one_at_a_time();
    let Some(small) = Mounted::new(600) else { return };
    let error = ShmStore::builder("x").folder(small.0.path()).build().unwrap_err();
    assert!(matches!(error, ShmOpenError::NoRoom(_)), "{error}");
    assert_eq!(std::fs::read_dir(small.0.path()).unwrap().count(), 0, "nothing is left");
    let Some(room) = Mounted::new(1_400) else { return };
    let store = fork(|| check_full(&open(room.0.path())));
    assert_eq!(store.end(), End::Code(0));
    // Others fill what was left: the room that a store has is its own.
    let store = open(room.0.path());
    let _ = std::fs::write(room.0.file("other"), vec![1; 2_000_000]);
    assert!(fill(&store) < 10_000);
    store.check().unwrap();
}
