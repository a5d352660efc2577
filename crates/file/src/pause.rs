//! Sleeps while another process, which cannot wake this one, holds the file.

use std::time::Duration;

use tollgate_store::{Condvar, Mutex};

/// Sleeps for `time`. It does not park the thread: that might consume a wake-up which is meant for what the thread does
/// afterwards.
pub(crate) fn pause(time: Duration) {
    let unnotified = Mutex::new(());
    Condvar::new().wait_for(&mut unnotified.lock(), time);
}
