//! Taking ahead, if that was chosen: most takes are then served from what the process holds already.

use std::sync::Arc;

use tollgate_core::{Costs, Limits};
use tollgate_store::prefetch::{UsageDelta, add_prefetch, bounds};
use tollgate_store::{
    BucketRef, Clock, Op, OwnedTransaction, Step, StepOutcome, StoreError, Taken, Transaction,
};

use super::address::Address;
use super::draft::UsageMode;
use super::item_executor::unique_id;
use super::item_queue::{ItemOp, OpResult};
use crate::inner::DynamoInner;

impl DynamoInner {
    /// Serves an operation from what is held ahead, or takes ahead with it; `None` if it cannot be served so.
    pub(super) async fn serve_prefetched(
        &self,
        address: &Address,
        errand: &ItemOp,
    ) -> Result<Option<OpResult>, StoreError> {
        let Some(prefetch) = self.buckets.settings.prefetch else { return Ok(None) };
        let limits = errand.with_step(|step| step.place.limits.clone());
        let Some(bounds) = bounds(&limits, prefetch.percent) else { return Ok(None) };
        let asked = errand.with_step(|step| match &step.op {
            Op::Take { costs, .. } => PrefetchRequest::Take((*costs).clone()),
            Op::Settle(usage) | Op::SettleExisting(usage) => {
                PrefetchRequest::Settle(usage.reserved.clone(), usage.used.into())
            }
            _ => PrefetchRequest::Other,
        });
        if errand.metering == UsageMode::Off && !matches!(asked, PrefetchRequest::Other) {
            return Ok(None);
        }
        let lane = self.buckets.lane(address);
        // A caller that comes while another portion is being taken waits for it, rather than taking one as well.
        let mut stash = lane.stash.lock().await;
        let now = Clock::system().now();
        match asked {
            PrefetchRequest::Take(costs) => {
                if stash.take(&limits, &costs, now) {
                    return Ok(Some(taken(stash.filled())));
                }
                if stash.limits().is_some() && !stash.is_of(&limits, &costs) {
                    let held = stash.empty();
                    self.give_back_prefetched(address, held).await?;
                }
                let ahead = stash.ahead(&costs, &bounds, now);
                let Some(more) = add_prefetch(&limits, &costs, &ahead) else { return Ok(None) };
                let mut counted = std::mem::take(&mut stash.uncounted);
                counted.add_take(&costs);
                let portion = self.portion(errand, &more, counted.clone());
                match self.routed(address, portion).await {
                    Ok(verdict @ OpResult::Done(StepOutcome::Taken(Taken { at, .. }))) => {
                        stash.fill(&limits, &costs, &ahead, at, now);
                        drop(stash);
                        self.return_when_idle(address, prefetch.idle);
                        Ok(Some(verdict))
                    }
                    other => {
                        counted.remove_take(&costs);
                        stash.uncounted = counted;
                        stash.shrink();
                        // Without anything ahead it may still fit.
                        other.map(|_| None)
                    }
                }
            }
            PrefetchRequest::Settle(reserved, used) => {
                let events = if errand.metering == UsageMode::Undo { -1 } else { 0 };
                let is_settled = stash.settle(&limits, (&reserved, &used), &bounds, events);
                Ok(is_settled.then_some(OpResult::Done(StepOutcome::Settled)))
            }
            PrefetchRequest::Other => {
                // What is done to the whole is done to what is held as well.
                let held = stash.empty();
                self.give_back_prefetched(address, held).await?;
                Ok(None)
            }
        }
    }

    fn portion(&self, errand: &ItemOp, costs: &Costs, counted: UsageDelta) -> ItemOp {
        errand.with_step(|step| {
            let steps = [Step { place: step.place, op: Op::Take { costs, term: None } }];
            let call = OwnedTransaction::new(&Transaction { id: None, steps: &steps, metered: true });
            ItemOp {
                call: Arc::new(call),
                step: 0,
                shards: 1,
                metering: UsageMode::Counted(Arc::new(counted)),
            }
        })
    }

    /// Gives back what is held ahead, and counts what was used of it.
    pub(super) async fn give_back_prefetched(
        &self,
        address: &Address,
        held: Option<(Limits, Vec<u64>, UsageDelta)>,
    ) -> Result<(), StoreError> {
        let Some((limits, held, counted)) = held else { return Ok(()) };
        if counted.is_nothing() && held.iter().all(|held| *held == 0) {
            return Ok(());
        }
        let Some(reserved) = add_prefetch(&limits, &Costs::none(limits.len()), &held) else { return Ok(()) };
        let used = vec![0; limits.len()];
        let usage = tollgate_core::Usage {
            at: self.service.clock.now(),
            reserved: &reserved,
            used: &used,
            holder: None,
        };
        let place = BucketRef { namespace: &address.namespace, key: &address.key, limits: &limits };
        let steps = [Step { place, op: Op::SettleExisting(usage) }];
        let call =
            OwnedTransaction::new(&Transaction { id: Some(unique_id()), steps: &steps, metered: true });
        let metering = UsageMode::Counted(Arc::new(counted));
        let errand = ItemOp { call: Arc::new(call), step: 0, shards: 1, metering };
        if self.routed(address, errand.clone()).await.is_err() {
            self.give_back_later(address.clone(), errand);
        }
        Ok(())
    }

    /// Gives back all that is held ahead of a bucket.
    pub(crate) async fn return_prefetched(&self, address: &Address) -> Result<(), StoreError> {
        if self.buckets.settings.prefetch.is_none() {
            return Ok(());
        }
        let held = self.buckets.lane(address).stash.lock().await.empty();
        self.give_back_prefetched(address, held).await
    }
}

enum PrefetchRequest {
    Take(Costs),
    Settle(Costs, Box<[u64]>),
    Other,
}

fn taken(at: tollgate_core::Tick) -> OpResult {
    OpResult::Done(StepOutcome::Taken(Taken { at, remarks: 0 }))
}
