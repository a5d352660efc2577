//! Holders that die without a word: their process is looked for, and what they held is back at once.

#![cfg(target_os = "linux")]

mod support;

use std::io::Read;

use support::child::{self, Process};
use support::{Folder, Tap};
use tollgate_core::Span;
use tollgate_file::FileStore;
use tollgate_store::{LeaseTerm, Store};

const AN_HOUR: Span = Span::from_secs(3_600);

#[test]
fn what_a_killed_process_held_is_back_at_once() {
    let folder = Folder::new();
    let store = FileStore::open(folder.file("x")).unwrap();
    let tap = Tap::new(&store, "user");
    let mut other = Process::start("one_who_holds", "hold", &folder.file("x"));
    assert_eq!(other.hears().as_deref(), Some("holds"));
    assert!(!tap.take(0, 1), "it lives, and holds both");
    other.kill();
    assert!(tap.take(0, 2), "it is gone");
    assert!(!tap.take(0, 1), "and its slots are taken");
}

#[test]
fn a_process_that_is_dead_and_not_yet_buried_holds_nothing() {
    let folder = Folder::new();
    let store = FileStore::open(folder.file("x")).unwrap();
    let tap = Tap::new(&store, "user");
    let mut other = Process::start("one_who_holds", "hold", &folder.file("x"));
    assert_eq!(other.hears().as_deref(), Some("holds"));
    other.child.kill().unwrap();
    while other.hears().is_some() {}
    // Its end is noticed when its output ends, which is a moment before it is dead.
    while !tap.take(0, 2) {}
}

#[test]
fn holders_of_this_process_and_of_other_hosts_keep_what_they_hold() {
    let folder = Folder::new();
    let store = FileStore::open(folder.file("x")).unwrap();
    let tap = Tap::new(&store, "user");
    let here = LeaseTerm { holder: store.new_holder_id(), ttl: AN_HOUR };
    let elsewhere = LeaseTerm { holder: store.new_holder_id() ^ 1 << 127, ttl: AN_HOUR };
    assert!(tap.try_take(0, 1, Some(here)).unwrap());
    assert!(tap.try_take(0, 1, Some(elsewhere)).unwrap());
    for _ in 0..3 {
        assert!(!tap.take(0, 1));
    }
}

#[test]
fn one_who_holds() {
    let Some((_, file)) = child::role() else { return };
    let store = FileStore::open(file).unwrap();
    let term = LeaseTerm { holder: store.new_holder_id(), ttl: AN_HOUR };
    assert!(Tap::new(&store, "user").try_take(0, 2, Some(term)).unwrap());
    child::say("holds");
    // Until it is killed: no process writes to its input, or ends it before.
    let _ = std::io::stdin().read(&mut [0]);
    std::thread::park();
}
