//! Counters of the workers of a key.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

/// Counters of the workers of a key.
#[derive(Default)]
pub(super) struct DemoTally {
    admitted: AtomicU64,
    denied: AtomicU64,
    waiting: AtomicU64,
    waited: AtomicU64,
    waited_ms: AtomicU64,
    over_used: AtomicU64,
    throttled: AtomicU64,
    no_account: AtomicU64,
}

/// A snapshot of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct DemoCount {
    /// Calls that were admitted.
    pub(super) admitted: u64,
    /// Calls that were denied or timed out.
    pub(super) denied: u64,
    /// Calls that wait now.
    #[serde(skip)]
    pub(super) waiting: u64,
    /// Calls that were admitted after a wait.
    pub(super) waited: u64,
    /// The total time that these have waited.
    pub(super) waited_ms: u64,
    /// Tokens that were used beyond what was acquired.
    pub(super) over_used: u64,
    /// Calls that the limits admitted, and the provider answered with 429.
    pub(super) throttled: u64,
    /// Calls that the limits admitted, and no account.
    pub(super) no_account: u64,
}

impl DemoTally {
    /// Counts a caller that begins to wait.
    pub(super) fn begin_to_wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a caller that stops waiting.
    pub(super) fn end_waiting(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts an admitted call.
    pub(super) fn admit(&self, waited: Option<Duration>) {
        self.admitted.fetch_add(1, Ordering::Relaxed);
        if let Some(waited) = waited.filter(|waited| !waited.is_zero()) {
            self.waited.fetch_add(1, Ordering::Relaxed);
            let millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            self.waited_ms.fetch_add(millis, Ordering::Relaxed);
        }
    }

    /// Counts a denied call.
    pub(super) fn deny(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts tokens that a call used beyond what it acquired.
    pub(super) fn over_use(&self, tokens: u64) {
        self.over_used.fetch_add(tokens, Ordering::Relaxed);
    }

    /// Counts a 429 of the provider.
    pub(super) fn throttle(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an admitted call that no account admitted.
    pub(super) fn find_no_account(&self) {
        self.no_account.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a snapshot.
    pub(super) fn count(&self) -> DemoCount {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        DemoCount {
            admitted: read(&self.admitted),
            denied: read(&self.denied),
            waiting: read(&self.waiting),
            waited: read(&self.waited),
            waited_ms: read(&self.waited_ms),
            over_used: read(&self.over_used),
            throttled: read(&self.throttled),
            no_account: read(&self.no_account),
        }
    }
}

impl std::iter::Sum for DemoCount {
    fn sum<I: Iterator<Item = DemoCount>>(counts: I) -> DemoCount {
        counts.fold(DemoCount::default(), |sum, count| DemoCount {
            admitted: sum.admitted + count.admitted,
            denied: sum.denied + count.denied,
            waiting: sum.waiting + count.waiting,
            waited: sum.waited + count.waited,
            waited_ms: sum.waited_ms + count.waited_ms,
            over_used: sum.over_used + count.over_used,
            throttled: sum.throttled + count.throttled,
            no_account: sum.no_account + count.no_account,
        })
    }
}
