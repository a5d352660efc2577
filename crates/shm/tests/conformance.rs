//! The store in shared memory behaves like the memory store: the suite finds no difference.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use support::Folder;
use tollgate_conformance::store::DifferentialStore;
use tollgate_conformance::{backend, records, store};
use tollgate_shm::ShmStore;
use tollgate_store::Clock;
use tollgate_store::usage::UsageRetention;

/// Stores in one folder, a new one each time.
struct Stores {
    folder: Folder,
    opened: AtomicU64,
}

impl Stores {
    fn new() -> Stores {
        Stores { folder: Folder::new(), opened: AtomicU64::new(0) }
    }

    fn open(&self, clock: Clock) -> ShmStore {
        self.open_keeping(clock, UsageRetention::default())
    }

    fn open_keeping(&self, clock: Clock, kept: UsageRetention) -> ShmStore {
        let name = self.opened.fetch_add(1, Ordering::Relaxed).to_string();
        let store = ShmStore::builder(&name).folder(self.folder.path()).clock(clock);
        let store = store.usage_retention(kept).build().expect("it can be made");
        // There are many of them, and memory is not for ever.
        std::fs::remove_file(store.path()).expect("it can be removed while it is open");
        store
    }
}

#[test]
fn the_store_in_shared_memory_equals_the_core() {
    let stores = Stores::new();
    store::run(150, |clock| stores.open(clock));
}

#[test]
fn it_keeps_what_a_store_of_records_promises() {
    let stores = Stores::new();
    records::run(150, |clock| stores.open(clock));
}

#[test]
fn it_keeps_what_a_store_of_both_promises() {
    let stores = Stores::new();
    backend::run(40, |clock| stores.open(clock));
}

#[test]
fn memory_and_shared_memory_agree_about_every_trace() {
    let stores = Stores::new();
    store::run(60, |clock| DifferentialStore::new(clock, |clock| stores.open(clock)));
}

#[test]
fn it_keeps_usage_for_as_long_as_it_is_told() {
    let stores = Stores::new();
    backend::usage_retention(|clock, kept| stores.open_keeping(clock, kept));
}
