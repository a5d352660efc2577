//! The wait queues of a file, which the processes that have it open share.
//!
//! They are in memory that those processes map, in a file beside the store, so a waiter is woken in microseconds and a
//! caller that does not wait pays for one load. Nothing is decided there: limits hold even if that file is lost. Where
//! it cannot be created, waiters of different processes poll, and have no order among each other. That is a warning and
//! no error: an administrator that reads the store of another user must not keep the processes of that user from
//! starting.

use std::path::Path;
use std::sync::Arc;

use tollgate_store::WaitQueues;

/// The suffix of the name of the file.
#[cfg(target_os = "linux")]
const SUFFIX: &str = "-queue";

#[cfg(target_os = "linux")]
pub(crate) fn open(store: &Path) -> Arc<WaitQueues> {
    let mut name = store.as_os_str().to_os_string();
    name.push(SUFFIX);
    tollgate_shm::wait_queues(Path::new(&name)).unwrap_or_else(|why| {
        tracing::warn!(
            target: "tollgate",
            store = %store.display(),
            %why,
            "processes that share this file wait in no order, because their queue cannot be opened; they poll instead"
        );
        Arc::default()
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open(_: &Path) -> Arc<WaitQueues> {
    Arc::default()
}
