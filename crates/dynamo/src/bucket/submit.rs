//! Submitting operations: to what is held ahead, to the queue of one item, or to the whole bucket.
//!
//! A take goes to any item, and remembers which in the last bits of when it was taken; so what is given back goes to
//! where it came from, from any process. When the number of items doubles, what was taken from an item may be given
//! back to it or to the one that was made of its half: both are right.

use std::sync::{Arc, Weak};

use tollgate_core::Tick;
use tollgate_store::prefetch::{Portion, PortionOutcome, PortionSource, Prefetcher, ServeMode, UsageDelta};
use tollgate_store::records::RecordsError;
use tollgate_store::workers::CallTimer;
use tollgate_store::{OwnedTransaction, StepOutcome, StoreError};

use super::address::Address;
use super::draft::UsageMode;
use super::item_executor::ItemExecutor;
use super::item_op::{ItemOp, OpResult};
use super::merged::{MergedExecutor, MergedOp};
use super::without_tests;

/// How often an operation is sent to another item because the number of items has changed.
const MOVES_MAX: usize = 16;

/// Submits operations to where they are executed.
pub(super) struct Submitter {
    pub(super) items: Arc<ItemExecutor>,
    pub(super) merged: MergedExecutor,
    pub(super) prefetcher: Prefetcher<Submitter>,
}

impl Submitter {
    pub(super) fn new(items: Arc<ItemExecutor>) -> Arc<Submitter> {
        Arc::new_cyclic(|this: &Weak<Submitter>| {
            let runtime = items.service().workers.handle().clone();
            let prefetcher = Prefetcher::new(items.writer.settings.prefetch, this.clone(), runtime);
            Submitter { merged: MergedExecutor::new(Arc::clone(&items)), items, prefetcher }
        })
    }

    /// Submits an operation: to what is held ahead, or to the items of the bucket.
    pub(super) async fn submit(&self, address: &Address, op: ItemOp) -> Result<OpResult, StoreError> {
        let mode = if op.metering == UsageMode::Off { ServeMode::Bypass } else { ServeMode::Portion };
        let events = if op.metering == UsageMode::Undo { -1 } else { 0 };
        let served = self.prefetcher.serve(&[op.step()], mode, events).await?;
        match served.and_then(|served| served.first().copied()) {
            Some(done) => Ok(OpResult::Done(done)),
            None => self.submit_to_items(address, op).await,
        }
    }

    /// Submits an operation to the queue of one item, or to the whole bucket if one item cannot decide it.
    async fn submit_to_items(&self, address: &Address, op: ItemOp) -> Result<OpResult, StoreError> {
        let timer = CallTimer::start();
        let map = &self.items.shards;
        for _ in 0..MOVES_MAX {
            let shards = map.shards(address);
            let Some((shard, part)) = op.part_for(shards, map.next_shard(shards)) else { break };
            match self.items.submit(address, shard, part).await? {
                OpResult::Moved => {}
                OpResult::Whole => break,
                OpResult::Denied(_) if shards > 1 => break,
                result => return Ok(result.marked(shard, shards)),
            }
        }
        match self.merged.execute(address, MergedOp::Do(&op, &[])).await {
            Ok(result) => Ok(result.marked(0, map.shards(address))),
            Err(RecordsError::Store(StoreError::Unavailable(_, why))) => {
                Err(StoreError::Unavailable(timer.elapsed(), why))
            }
            Err(error) => Err(without_tests(error)),
        }
    }

    /// Gives back what was taken: now, or in the background if the service does not answer.
    pub(super) async fn give_back(&self, address: Address, op: ItemOp) {
        if self.submit(&address, op.clone()).await.is_err() {
            self.items.jobs.give_back(address, op);
        }
    }

    /// Gives back all that is held ahead of a bucket.
    pub(super) async fn return_prefetched(&self, address: &Address) {
        self.prefetcher.return_bucket(&address.namespace, &address.key).await;
    }
}

impl PortionSource for Submitter {
    // A portion costs the write that the call would cost, and settlements are served from it.
    const TAKES_PARTIAL: bool = true;

    fn now(&self) -> Tick {
        self.items.now()
    }

    async fn take_portion(&self, portion: &Portion) -> PortionOutcome {
        let used = portion.used.first().cloned().unwrap_or_default();
        let (address, op) = match counted_op(portion.call.clone(), used) {
            Ok(submitted) => submitted,
            Err(error) => return PortionOutcome::Failed(error),
        };
        match self.submit_to_items(&address, op).await {
            Ok(OpResult::Done(done @ StepOutcome::Taken(_))) => PortionOutcome::Taken(vec![done]),
            Ok(_) => PortionOutcome::NotTaken,
            // If it was made, the item executor finds that out and gives it back.
            Err(error) => PortionOutcome::Failed(error),
        }
    }

    async fn give_back(&self, call: OwnedTransaction, used: UsageDelta) {
        if let Ok((address, op)) = counted_op(call, used)
            && self.submit_to_items(&address, op.clone()).await.is_err()
        {
            self.items.jobs.give_back(address, op);
        }
    }
}

/// Returns the only step of a call, which counts `used`.
fn counted_op(call: OwnedTransaction, used: UsageDelta) -> Result<(Address, ItemOp), StoreError> {
    let op = ItemOp::new(Arc::new(call), 0, UsageMode::Counted(Arc::new(used)));
    Ok((Address::of(&op.step().place)?, op))
}
