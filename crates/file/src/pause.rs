//! Waiting for another process, which cannot wake us.

use std::time::Duration;

use tollgate_store::{Condvar, Mutex};

/// Waits for `time`, and for nothing else. Not by parking the thread: that might take a wake-up which is meant for what
/// the thread does afterwards.
pub(crate) fn pause(time: Duration) {
    let unnotified = Mutex::new(());
    Condvar::new().wait_for(&mut unnotified.lock(), time);
}
