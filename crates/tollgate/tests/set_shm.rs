//! Limit sets in memory that processes share.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::Clock;
use tollgate::shm::ShmStore;
use tollgate::store::Backend;

fn open(clock: Clock) -> Arc<dyn Backend> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let name = format!("set-test-{}-{number}", std::process::id());
    let store = ShmStore::builder(&name).clock(clock).build().expect("it can be made");
    // No other process uses it, and it is gone with this one.
    std::fs::remove_file(store.path()).expect("it can be removed while it is open");
    Arc::new(store)
}

tollgate_conformance::set_suite!(open);
