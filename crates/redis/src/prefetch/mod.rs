//! Taking ahead, if that was chosen: most calls are then served from what the process holds already.
//!
//! A call is served so if all of its steps can be: it is one script otherwise, which takes a portion of every bucket of the
//! chain at once.

mod holdings;
mod known;
mod serve;

use tollgate_core::{Costs, Limits, Usage};
use tollgate_store::prefetch::{Prefetch, UsageDelta, add_prefetch};
use tollgate_store::{
    BucketRef, Key, Op, OwnedTransaction, Scope, Step, StoreError, Transaction, TxnOutcome,
};

use crate::apply::unique_id;
use crate::background::REMEMBERED;
use crate::inner::{RedisInner, without_tests};
use holdings::{PrefetchedBucket, PrefetchedBuckets};
use known::CallLog;

/// What a process holds ahead.
pub(crate) struct Prefetcher {
    prefetch: Option<Prefetch>,
    holdings: PrefetchedBuckets,
    known: CallLog,
}

/// What is held ahead of a bucket and was used of it: its limits, what there is to give back, and what there is to count.
type PrefetchedAmounts = (Limits, Vec<u64>, UsageDelta);

impl Prefetcher {
    pub(crate) fn new(prefetch: Option<Prefetch>) -> Prefetcher {
        Prefetcher { prefetch, holdings: PrefetchedBuckets::default(), known: CallLog::default() }
    }

    pub(crate) fn prefetch(&self) -> Option<Prefetch> {
        self.prefetch
    }

    /// Forgets a call: a caller that asks again with its id is answered anew.
    pub(crate) fn forget_call(&self, id: u128) {
        self.known.forget(id);
    }
}

impl RedisInner {
    /// Gives back what is held ahead of a bucket, and counts what was used of it. What cannot be given back now is given back
    /// later.
    async fn give_back(&self, holding: &PrefetchedBucket, held: Option<PrefetchedAmounts>) {
        let Some((limits, held, counted)) = held else { return };
        if counted.is_nothing() && held.iter().all(|held| *held == 0) {
            return;
        }
        let Some(call) = self.returning(&holding.namespace, &holding.key, &limits, &held) else { return };
        match self.apply_with_usage(&call, &[], REMEMBERED, std::slice::from_ref(&counted)).await {
            Ok(applied) => self.after(&call, &applied),
            Err(_) => self.hand_over_told(call, vec![counted]),
        }
    }

    /// The call that gives so much back.
    fn returning(
        &self,
        namespace: &str,
        key: &Key,
        limits: &Limits,
        held: &[u64],
    ) -> Option<OwnedTransaction> {
        let reserved = add_prefetch(limits, &Costs::none(limits.len()), held)?;
        let used = vec![0; limits.len()];
        let at = self.service.time.clock().now();
        let usage = Usage { at, reserved: &reserved, used: &used, holder: None };
        let steps = [Step { place: BucketRef { namespace, key, limits }, op: Op::SettleExisting(usage) }];
        Some(OwnedTransaction::new(&Transaction { id: Some(unique_id()), steps: &steps, metered: true }))
    }

    /// Gives back all that is held ahead of buckets of a namespace.
    pub(crate) async fn return_prefetched(&self, namespace: &str, scope: Scope<'_>) {
        for holding in self.ahead.holdings.of(namespace, scope) {
            let mut stash = holding.stash.lock().await;
            let held = stash.empty();
            self.give_back(&holding, held).await;
        }
    }

    /// Lets go of all that is held ahead of buckets that are forgotten.
    pub(crate) async fn drop_prefetched(&self, namespace: &str, scope: Scope<'_>) {
        for holding in self.ahead.holdings.of(namespace, scope) {
            drop(holding.stash.lock().await.empty());
        }
    }

    /// Starts a background task that gives back what is held ahead of a bucket once no caller wants it.
    fn return_when_idle(&self, name: Vec<u8>, prefetch: Prefetch) {
        let this = self.this.clone();
        self.service.workers.handle().spawn(async move {
            loop {
                tokio::time::sleep(prefetch.idle.to_duration() / 2).await;
                // Should the store be gone, what it held fills up again by itself.
                let Some(inner) = this.upgrade() else { return };
                let Some(holding) = inner.ahead.holdings.get(&name) else { return };
                let mut stash = holding.stash.lock().await;
                if !stash.is_idle(tollgate_store::Clock::system().now(), prefetch.idle) {
                    continue;
                }
                let held = stash.empty();
                inner.give_back(&holding, held).await;
                drop(stash);
                if inner.ahead.holdings.remove(&name, holding) {
                    return;
                }
            }
        });
    }

    /// Finds out what came of a portion whose answer was lost. Should it have been taken it is given back; what was used
    /// before it, and was to be counted with it, is counted in any case.
    fn find_out(&self, portion: OwnedTransaction, told: Vec<UsageDelta>, asked: Vec<Costs>) {
        let Some(inner) = self.this.upgrade() else { return };
        self.service.workers.handle().spawn(async move {
            let found = inner.tried_for_long(&portion, &told).await.map_err(without_tests);
            let is_taken = match found {
                Ok(TxnOutcome::Done(_)) => true,
                Ok(_) => false,
                // Whether it was taken is unknown. What was taken fills up again by itself.
                Err(StoreError::Unavailable(..)) => return,
                Err(_) => false,
            };
            for ((step, told), asked) in portion.steps().zip(told).zip(asked) {
                let mut counted = UsageDelta::default();
                counted.remove_take(&asked);
                let (held, counted) = match step.op {
                    Op::Take { costs, .. } if is_taken => (costs.amounts().to_vec(), counted),
                    _ => {
                        let mut before = told;
                        before.remove_take(&asked);
                        (vec![0; step.place.limits.len()], before)
                    }
                };
                let BucketRef { namespace, key, limits } = step.place;
                if let Some(call) = inner.returning(namespace, key, limits, &held) {
                    inner.hand_over_told(call, vec![counted]);
                }
            }
        });
    }
}
