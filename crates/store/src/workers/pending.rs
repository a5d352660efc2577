//! Detached calls that have not been attempted yet.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::Mutex;

/// Detached calls that have not been attempted yet, counted by their buckets: a caller that asks for one of these
/// buckets is answered after them.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_store::workers::PendingCalls;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let calls = Arc::new(PendingCalls::default());
/// let pending = calls.add(vec!["bucket"]);
/// calls.none_of(|| vec!["another"]).await;
/// // The first attempt was made.
/// drop(pending);
/// calls.none_of(|| vec!["bucket"]).await;
/// # });
/// ```
#[derive(Debug)]
pub struct PendingCalls<K> {
    counts: Mutex<HashMap<K, usize>>,
    attempted: Notify,
}

/// A call that has not been attempted yet. Dropped after its first attempt.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_store::workers::{PendingCall, PendingCalls};
///
/// /// A call that counts as attempted once its first attempt is dropped.
/// async fn attempt(pending: PendingCall<&str>) -> &'static str {
///     let result = "sent";
///     drop(pending);
///     result
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let calls = Arc::new(PendingCalls::default());
/// assert_eq!(attempt(calls.add(vec!["bucket"])).await, "sent");
/// calls.none().await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "the call counts as attempted once this is dropped"]
pub struct PendingCall<K: Eq + Hash> {
    calls: Arc<PendingCalls<K>>,
    keys: Vec<K>,
}

impl<K> Default for PendingCalls<K> {
    fn default() -> PendingCalls<K> {
        PendingCalls { counts: Mutex::default(), attempted: Notify::new() }
    }
}

impl<K: Clone + Eq + Hash> PendingCalls<K> {
    /// Adds a call on the buckets of these keys.
    pub fn add(self: &Arc<Self>, keys: Vec<K>) -> PendingCall<K> {
        let mut counts = self.counts.lock();
        keys.iter().for_each(|key| *counts.entry(key.clone()).or_default() += 1);
        drop(counts);
        PendingCall { calls: Arc::clone(self), keys }
    }

    /// Waits until the detached calls on the buckets of these keys were attempted. The keys are only computed if
    /// there are any such calls.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn none_of(&self, keys: impl Fn() -> Vec<K>) {
        self.until(|counts| !keys().iter().any(|key| counts.contains_key(key))).await;
    }

    /// Waits until all detached calls were attempted.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn none(&self) {
        self.until(|_| false).await;
    }

    async fn until(&self, is_reached: impl Fn(&HashMap<K, usize>) -> bool) {
        loop {
            // Made before the check, so that a notification in between is not missed.
            let attempted = self.attempted.notified();
            {
                let counts = self.counts.lock();
                if counts.is_empty() || is_reached(&counts) {
                    return;
                }
            }
            attempted.await;
        }
    }
}

impl<K: Eq + Hash> Drop for PendingCall<K> {
    fn drop(&mut self) {
        let mut counts = self.calls.counts.lock();
        for key in &self.keys {
            if let Some(count) = counts.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(key);
                }
            }
        }
        drop(counts);
        self.calls.attempted.notify_waiters();
    }
}
