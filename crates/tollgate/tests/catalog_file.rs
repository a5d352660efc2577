//! The catalog keeps its promises on an embedded file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::Clock;
use tollgate::file::{Durability, FileStore};
use tollgate::store::Backend;
use tollgate_conformance::catalog;

fn open(clock: Clock) -> Arc<dyn Backend> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("catalog-{number}.db"));
    for suffix in ["", "-wal", "-shm"] {
        // What an earlier run left behind, if it did.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let store = FileStore::builder(&path).clock(clock).durability(Durability::Off).build();
    Arc::new(store.expect("a new file can be opened"))
}

#[test]
fn every_promise_of_the_catalog_is_kept_on_a_file() {
    assert_eq!(catalog::broken(&open), [""; 0]);
}
