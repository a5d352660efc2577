//! Limit sets in an embedded file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::Clock;
use tollgate::file::{Durability, FileStore};
use tollgate::store::Backend;

/// Durability costs time and changes no verdict; what it is worth is tested where processes are killed.
fn open(clock: Clock) -> Arc<dyn Backend> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("sets-{number}.db"));
    for suffix in ["", "-wal", "-shm", "-queue"] {
        // What an earlier run left behind, if it did.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let store = FileStore::builder(&path).clock(clock).durability(Durability::Off).build();
    Arc::new(store.expect("a new file can be opened"))
}

tollgate_conformance::set_suite!(open);
