//! Deferred calls: detached calls that found no lock or no space, and are applied with the next call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_store::{Mutex, OwnedTransaction};

/// How many calls may be deferred. Beyond that they are lost; what they would have given back expires.
const DEFERRED_MAX: usize = 10_000;

/// Deferred calls, the oldest first.
#[derive(Default)]
pub(crate) struct DeferredCalls {
    count: AtomicUsize,
    calls: Mutex<VecDeque<OwnedTransaction>>,
}

impl DeferredCalls {
    /// Returns whether there are any. This is one load, so that the common case costs nothing.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn put(&self, call: OwnedTransaction) {
        let mut calls = self.calls.lock();
        if calls.len() < DEFERRED_MAX {
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
