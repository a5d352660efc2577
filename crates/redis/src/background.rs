//! Background work: detached calls, undo of abandoned calls, sweeping.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::workers::{CallTimer, time_ordered_id, unique_id};
use tollgate_store::{Mutex, OpId, OutcomeCallback, OwnedTransaction, QueuePlace, TxnOutcome};

use crate::commit::Changes;
use crate::inner::{RedisInner, without_tests};

/// For how long a detached call is retried.
pub(crate) const RETRIED_FOR: Duration = Duration::from_secs(600);

/// For how long the outcome of a detached call is remembered: the first attempt may have applied it, and the last one
/// reads what came of it.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(1_200);

/// After how many new buckets or expiring records some are swept.
const SWEPT_AFTER: usize = 16;

/// How many are swept for each new one. Two keep pace with any growth.
const SWEPT_PER_NEW: usize = 2;

impl RedisInner {
    fn bucket_names(&self, call: &OwnedTransaction) -> Vec<Vec<u8>> {
        call.steps().map(|step| self.service.layout.bucket(step.place.namespace, step.place.key)).collect()
    }

    /// Waits until the detached calls on the buckets of a call were attempted, but not for longer than half of the
    /// timeout: then the call gets what there is.
    pub(crate) async fn await_detached(&self, call: &OwnedTransaction) {
        let none = self.background.pending().none_of(|| self.bucket_names(call));
        let _ = tokio::time::timeout(self.service.timeout / 2, none).await;
    }

    /// Applies a call in the background, and calls `callback` with the outcome.
    pub(crate) fn apply_detached(&self, call: OwnedTransaction, callback: OutcomeCallback) {
        self.detach(call, None, callback);
    }

    /// Applies a call in the background that settles what was held ahead, so it is not served from that. Its only step
    /// counts `used`.
    pub(crate) fn settle_prefetched(&self, call: OwnedTransaction, used: UsageDelta) {
        self.detach(call, Some(used), Box::new(|_| ()));
    }

    fn detach(&self, mut call: OwnedTransaction, used: Option<UsageDelta>, callback: OutcomeCallback) {
        // With an id, what was applied is not applied again by the next attempt.
        call.id = call.id.or_else(|| Some(OpId(time_ordered_id(self.service.time.clock().now()))));
        let Some(inner) = self.this.upgrade() else { return };
        let names = self.bucket_names(&call);
        let detached = Arc::new((call, used, Mutex::new(Some(callback))));
        self.background.retry(names, move || {
            let (inner, detached) = (Arc::clone(&inner), Arc::clone(&detached));
            async move {
                let (call, used, callback) = &*detached;
                let outcome = match used {
                    None => inner.apply_prefetched(call, &[], REMEMBERED, &QueuePlace::default()).await,
                    Some(used) => inner.apply_with_usage(call, std::slice::from_ref(used)).await,
                };
                let outcome = outcome.map_err(without_tests)?;
                inner.notify_freed(call, &outcome);
                if let Some(callback) = callback.lock().take() {
                    callback(&outcome);
                }
                Ok(())
            }
        });
    }

    /// Undoes a call that was applied and whose caller is gone.
    pub(crate) fn undo(&self, call: &OwnedTransaction, outcome: &TxnOutcome) {
        let TxnOutcome::Done(done) = outcome else { return };
        let Some(mut undo) = call.clone().undo(done) else { return };
        undo.id = Some(unique_id());
        self.apply_detached(undo, Box::new(|_| ()));
        // A caller that sends the call again with the same id is to be answered anew.
        if let Some(OpId(id)) = call.id {
            self.calls.forget(id);
            let mut forget = redis::cmd("DEL");
            forget.arg(self.service.layout.outcome(id));
            self.in_background(move |inner| async move {
                inner.service.with_retries(CallTimer::start(), &forget, None).await
            });
        }
    }

    /// Sweeps some of what grows, once enough was added to it.
    pub(crate) fn sweep_after(&self, call: &OwnedTransaction, changes: &Changes) {
        if is_due(&self.made, changes.created)
            && let Some(namespace) = call.steps().next().map(|step| step.place.namespace.to_owned())
        {
            // As of now: an hour that ends before the job is done is left to those that come after it.
            let now = self.service.time.clock().now();
            self.in_background(move |inner| async move {
                inner.sweep_buckets(&namespace, SWEPT_AFTER * SWEPT_PER_NEW, now).await
            });
        }
        if is_due(&self.expiring, changes.expiring) {
            self.in_background(|inner| async move { inner.sweep_records(SWEPT_AFTER * SWEPT_PER_NEW).await });
        }
    }

    /// Runs a job once. What it cannot do now is done another time.
    pub(crate) fn in_background<F, T>(&self, job: impl FnOnce(Arc<RedisInner>) -> F) -> Option<JoinHandle<()>>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        Some(self.background.spawn(job(self.this.upgrade()?)))
    }
}

/// Adds to a count, and returns whether it passed another multiple of [`SWEPT_AFTER`].
fn is_due(count: &AtomicUsize, more: usize) -> bool {
    if more == 0 {
        return false;
    }
    let before = count.fetch_add(more, Ordering::Relaxed);
    before / SWEPT_AFTER != (before + more) / SWEPT_AFTER
}
