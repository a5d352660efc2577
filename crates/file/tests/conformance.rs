//! The file store behaves like the memory store: the suite finds no difference.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use support::Folder;
use tollgate_conformance::{backend, records, store};
use tollgate_file::{Durability, FileStore, FileStoreBuilder};
use tollgate_store::Clock;

/// Files in one folder, a new one each time.
struct Files {
    folder: Folder,
    opened: AtomicU64,
}

impl Files {
    fn new() -> Files {
        Files { folder: Folder::new(), opened: AtomicU64::new(0) }
    }

    fn builder(&self, clock: Clock) -> FileStoreBuilder {
        let name = format!("{}.tollgate", self.opened.fetch_add(1, Ordering::Relaxed));
        FileStore::builder(self.folder.file(&name)).clock(clock).durability(Durability::Off)
    }

    fn open(&self, clock: Clock) -> FileStore {
        self.builder(clock).build().expect("the file can be made")
    }
}

#[test]
fn the_file_store_equals_the_core() {
    let files = Files::new();
    store::run(60, |clock| files.open(clock));
}

#[test]
fn it_keeps_what_a_store_of_records_promises() {
    let files = Files::new();
    records::run(60, |clock| files.open(clock));
}

#[test]
fn it_keeps_what_a_store_of_both_promises() {
    let files = Files::new();
    backend::run(20, |clock| files.open(clock));
}

#[test]
fn it_keeps_usage_for_as_long_as_it_is_told() {
    let files = Files::new();
    backend::usage_retention(|clock, kept| {
        files.builder(clock).usage_retention(kept).build().expect("the file can be made")
    });
}
