//! Detached calls, while the lock is not to be had or there is no space: they are made with the next call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_store::{Mutex, OwnedTransaction};

/// How many may be late. Beyond that they are lost; what they would have given back expires.
const LATE_MAX: usize = 10_000;

/// Calls that are late, the oldest first.
#[derive(Default)]
pub(crate) struct DeferredCalls {
    count: AtomicUsize,
    calls: Mutex<VecDeque<OwnedTransaction>>,
}

impl DeferredCalls {
    /// Whether there are any. One look, so that the common case pays nothing.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn put(&self, call: OwnedTransaction) {
        let mut calls = self.calls.lock();
        if calls.len() < LATE_MAX {
            calls.push_back(call);
        }
        self.count.store(calls.len(), Ordering::Relaxed);
    }

    pub(crate) fn put_back(&self, call: OwnedTransaction) {
        let mut calls = self.calls.lock();
        calls.push_front(call);
        self.count.store(calls.len(), Ordering::Relaxed);
    }

    pub(crate) fn take(&self) -> Option<OwnedTransaction> {
        let mut calls = self.calls.lock();
        let call = calls.pop_front();
        self.count.store(calls.len(), Ordering::Relaxed);
        call
    }
}
