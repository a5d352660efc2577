//! Failpoints: a test chooses the write before which the process ends, as if it had been killed there.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many writes are left; 0 if they are not counted.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// How many writes were made since [`arm`].
static PASSED: AtomicU64 = AtomicU64::new(0);

/// Lets the process end before it makes the write with this number, counted from 1. With 0 they are only counted.
pub fn arm(number: u64) {
    PASSED.store(0, Ordering::Relaxed);
    LEFT.store(number, Ordering::Relaxed);
}

/// Returns how many writes were made since [`arm`].
pub fn passed() -> u64 {
    PASSED.load(Ordering::Relaxed)
}

/// Called before every write to the memory.
#[inline]
pub(crate) fn pass() {
    PASSED.fetch_add(1, Ordering::Relaxed);
    if LEFT.load(Ordering::Relaxed) != 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
        std::process::abort();
    }
}
