//! Background work: calls and jobs that no caller waits for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::records::RecordsError;
use tollgate_store::{Mutex, OpId, OutcomeCallback, OwnedTransaction, QueuePlace, StoreError, TxnOutcome};

use crate::apply::unique_id;
use crate::commit::Changes;
use crate::inner::{RedisInner, without_tests};
use crate::service::CallTimer;

/// For how long a detached call is tried.
const TRIED_FOR: Duration = Duration::from_secs(600);

/// For how long what came of it is remembered: it may have been done by the first try, and found out by the last.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(1_200);

/// How long it rests after each try that failed, at most.
const REST_MAX: Duration = Duration::from_secs(5);

const FIRST_REST: Duration = Duration::from_millis(50);

/// After how many new buckets or expiring records some are looked at.
const SWEPT_AFTER: usize = 16;

/// How many are looked at for each new one. Two keep pace with any growth.
const SWEPT_PER_NEW: usize = 2;

/// Detached calls that were not tried yet, by their buckets: a caller that asks for one of these comes after them.
#[derive(Default)]
pub(crate) struct DetachedCalls {
    counts: Mutex<HashMap<Vec<u8>, usize>>,
    heard: tokio::sync::Notify,
}

impl DetachedCalls {
    pub(crate) fn add(&self, keys: &[Vec<u8>]) {
        let mut counts = self.counts.lock();
        keys.iter().for_each(|key| *counts.entry(key.clone()).or_default() += 1);
    }

    pub(crate) fn remove(&self, keys: &[Vec<u8>]) {
        let mut counts = self.counts.lock();
        for key in keys {
            if let Some(count) = counts.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(key);
                }
            }
        }
        drop(counts);
        self.heard.notify_waiters();
    }

    /// Waits until the detached calls on these were tried.
    pub(crate) async fn none(&self, keys: impl Fn() -> Vec<Vec<u8>>) {
        loop {
            let heard = self.heard.notified();
            {
                let counts = self.counts.lock();
                if counts.is_empty() || !keys().iter().any(|key| counts.contains_key(key)) {
                    return;
                }
            }
            heard.await;
        }
    }
}

impl RedisInner {
    fn names(&self, call: &OwnedTransaction) -> Vec<Vec<u8>> {
        call.steps().map(|step| self.service.layout.bucket(step.place.namespace, step.place.key)).collect()
    }

    /// Waits until the detached calls on the buckets of a call were tried, but not for longer than half of what a call
    /// may take: then the call gets what there is.
    pub(crate) async fn await_detached(&self, call: &OwnedTransaction) {
        let none = self.unheard.none(|| self.names(call));
        let _ = tokio::time::timeout(self.service.timeout / 2, none).await;
    }

    /// Applies a call in the background: no caller waits for its answer.
    pub(crate) fn apply_detached(&self, call: OwnedTransaction) {
        self.hand_over_told(call, Vec::new());
    }

    /// As [`apply_detached`](Self::apply_detached), and what the steps used is counted as `counted` says. That was held
    /// ahead, so the call is not served from what is held ahead.
    pub(crate) fn hand_over_told(&self, call: OwnedTransaction, counted: Vec<UsageDelta>) {
        self.hand_over_counted(call, counted, Box::new(|_| ()));
    }

    /// As [`hand_over_told`](Self::hand_over_told), and `told` is called with the outcome.
    pub(crate) fn hand_over_counted(
        &self,
        mut call: OwnedTransaction,
        counted: Vec<UsageDelta>,
        told: OutcomeCallback,
    ) {
        // With an id, what was done is not done again with the next try.
        call.id = call.id.or_else(|| Some(OpId(self.new_holder_id())));
        let Some(inner) = self.this.upgrade() else { return };
        let names = self.names(&call);
        self.unheard.add(&names);
        let mut names = Some(names);
        let handle = self.service.workers.handle().clone();
        handle.spawn(async move {
            let (mut rest, watch) = (FIRST_REST, CallTimer::start());
            while watch.waited() < TRIED_FOR {
                let applied = match counted.is_empty() {
                    true => inner.apply_prefetched(&call, &[], REMEMBERED, &QueuePlace::default()).await,
                    false => inner.apply_with_usage(&call, &[], REMEMBERED, &counted).await,
                };
                let applied = applied.map_err(without_tests);
                names.take().iter().for_each(|names| inner.unheard.remove(names));
                match applied {
                    Err(StoreError::Unavailable(..)) => tokio::time::sleep(rest).await,
                    // What the store refuses for good cannot be helped; what was held expires.
                    Err(_) => return,
                    Ok(applied) => {
                        inner.after(&call, &applied);
                        return told(&applied);
                    }
                }
                rest = (rest * 2).min(REST_MAX);
            }
        });
    }

    /// Applies a call again and again until the server answers, or for as long as anything is tried.
    pub(crate) async fn tried_for_long(
        &self,
        call: &OwnedTransaction,
        told: &[UsageDelta],
    ) -> Result<TxnOutcome, RecordsError> {
        let (mut rest, watch) = (FIRST_REST, CallTimer::start());
        loop {
            let applied = self.apply_with_usage(call, &[], REMEMBERED, told).await;
            let is_away = matches!(applied, Err(RecordsError::Store(StoreError::Unavailable(..))));
            if !is_away || watch.waited() >= TRIED_FOR {
                return applied;
            }
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(REST_MAX);
        }
    }

    /// Undoes a call that was applied and whose caller is gone.
    pub(crate) fn undo(&self, call: &OwnedTransaction, applied: &TxnOutcome) {
        let TxnOutcome::Done(done) = applied else { return };
        let Some(mut undo) = call.clone().undo(done) else { return };
        undo.id = Some(unique_id());
        self.apply_detached(undo);
        // A caller that asks again with the id of the call is to be answered anew.
        if let Some(OpId(id)) = call.id {
            self.ahead.forget_call(id);
            let mut forget = redis::cmd("DEL");
            forget.arg(self.service.layout.outcome(id));
            self.in_background(move |inner| async move {
                inner.service.with_retries(CallTimer::start(), &forget, None).await
            });
        }
    }

    /// Looks after what grows, once enough has been added to it.
    pub(crate) fn after_changes(&self, call: &OwnedTransaction, changes: &Changes) {
        let is_due = |count: &std::sync::atomic::AtomicUsize, more: usize| {
            more > 0 && {
                let before = count.fetch_add(more, Ordering::Relaxed);
                before / SWEPT_AFTER != (before + more) / SWEPT_AFTER
            }
        };
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

    pub(crate) fn in_background<F, T>(&self, job: impl FnOnce(Arc<RedisInner>) -> F) -> Option<JoinHandle<()>>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let job = job(self.this.upgrade()?);
        // What cannot be done now is done another time.
        Some(self.service.workers.handle().spawn(async move { drop(job.await) }))
    }
}
