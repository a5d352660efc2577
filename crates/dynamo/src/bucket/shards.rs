//! Which item of a bucket an operation goes to, and when there have to be more of them.
//!
//! A take goes to any of them, and remembers which in the last bits of when it was taken; so what is given back goes to
//! where it came from, whichever process gives it back. When the number of items doubles, what was taken from an item
//! may be given back to it or to the one that was made of its half: both are right.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate_core::Tick;
use tollgate_store::records::RecordsError;
use tollgate_store::{BucketRef, Op, OwnedTransaction, Step, StepOutcome, StoreError, Taken, Transaction};

use super::address::Address;
use super::item_queue::{ItemOp, OpResult};
use super::merged::MergedOp;
use super::snapshot::ItemSnapshot;
use super::without_tests;
use crate::inner::DynamoInner;
use crate::service::Elapsed;

/// The most items that a bucket is in, and a power of two: the last bits of a time say which.
pub(crate) const SHARDS_MAX: u32 = 32;

/// How often an operation is sent elsewhere because the number of items has changed.
const MOVES_MAX: usize = 16;

/// How often it is tried to split a bucket so that each half gets its part. After that the new half begins with nothing,
/// which those who keep writing to it cannot prevent.
const SPLITS_MAX: usize = 3;

impl DynamoInner {
    /// Executes an operation: by what is held ahead, or where it belongs.
    pub(super) async fn route(&self, address: &Address, errand: ItemOp) -> Result<OpResult, StoreError> {
        match self.serve_prefetched(address, &errand).await? {
            Some(verdict) => Ok(verdict),
            None => self.routed(address, errand).await,
        }
    }

    /// Executes an operation where it belongs.
    pub(super) async fn routed(&self, address: &Address, errand: ItemOp) -> Result<OpResult, StoreError> {
        let watch = Elapsed::start();
        for _ in 0..MOVES_MAX {
            let shards = self.buckets.lane(address).shards();
            let Some((shard, part)) = errand.part_for(shards, self.next_shard(shards)) else { break };
            match self.go(address, shard, part).await? {
                OpResult::Moved => {}
                OpResult::Whole => break,
                OpResult::Denied(_) if shards > 1 => break,
                verdict => return Ok(verdict.marked(shard, shards)),
            }
        }
        match self.whole(address, MergedOp::Do(&errand, &[])).await {
            Ok(verdict) => Ok(verdict.marked(0, self.buckets.lane(address).shards())),
            Err(RecordsError::Store(StoreError::Unavailable(_, why))) => {
                Err(StoreError::Unavailable(watch.waited(), why))
            }
            Err(error) => Err(without_tests(error)),
        }
    }

    /// In how many items a bucket is; 0 if there is no such bucket.
    pub(crate) async fn count_shards(
        &self,
        namespace: &str,
        entity: &str,
        resource: &str,
    ) -> Result<u32, StoreError> {
        let address = Address::pair(namespace, entity, resource);
        let first = super::look::look(&self.service, &address, 0).await?;
        Ok(first.map_or(0, |image| image.shards))
    }

    /// One after the other, so that all are used alike.
    fn next_shard(&self, shards: u32) -> u32 {
        self.buckets.turn.fetch_add(1, Ordering::Relaxed) % shards
    }

    /// Doubles the items of a bucket, unless another writer was quicker or its limits cannot be shared out any further.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(crate) async fn double(&self, address: &Address) -> Result<(), StoreError> {
        let lane = self.buckets.lane(address);
        let before = lane.shards();
        for _ in 0..SPLITS_MAX {
            let wanted = before * 2;
            if wanted > self.buckets.settings.shards_max {
                return Ok(());
            }
            match self.whole(address, MergedOp::ShareOut(wanted)).await {
                Ok(_) => return Ok(()),
                Err(RecordsError::Store(StoreError::Unavailable(..))) if lane.shards() != before => {
                    return Ok(());
                }
                Err(RecordsError::Store(StoreError::Unavailable(..))) => {}
                Err(error) => return Err(without_tests(error)),
            }
        }
        self.split_blindly(address, before).await
    }

    /// Doubles the items without looking at what they have: the new ones begin with nothing and fill up. What the old
    /// ones have beyond what they may have then is lost. Nothing is minted.
    async fn split_blindly(&self, address: &Address, shards: u32) -> Result<(), StoreError> {
        let Some(image) = super::look::look(&self.service, address, 0).await? else { return Ok(()) };
        if image.shards != shards
            || image.whole.part(u64::from(shards) * 2 - 1, u64::from(shards) * 2).is_none()
        {
            self.buckets.lane(address).set_shards(image.shards);
            return Ok(());
        }
        let parts = (0..shards * 2).map(|shard| match shard < shards {
            true => Ok(self.update_item(address, shard, &super::write::share_count(shards, shards * 2))),
            false => {
                let now = self.service.clock.now();
                let empty = ItemSnapshot::empty(&image, shard, shards * 2, now);
                let empty = empty.ok_or_else(|| StoreError::BadCall("the limits make no parts".into()))?;
                Ok(self.update_item(address, shard, &super::write::create(&empty, address)))
            }
        });
        let parts = parts.collect::<Result<Vec<_>, StoreError>>()?;
        match self.service.transact(parts).await {
            Ok(()) => self.buckets.lane(address).set_shards(shards * 2),
            // Another writer was quicker.
            Err(crate::service::CallFailure::Canceled(_)) => {}
            Err(failure) => return Err(failure.store_error()),
        }
        Ok(())
    }
}

impl ItemOp {
    /// The item that it goes to, of as many as there are, and what it is there; `None` if it is about the whole.
    fn part_for(&self, shards: u32, turn: u32) -> Option<(u32, ItemOp)> {
        if shards == 1 {
            return Some((0, ItemOp { shards, ..self.clone() }));
        }
        self.with_step(|step| match &step.op {
            Op::Take { costs, term } => {
                let share = step.place.limits.part(turn.into(), shards.into())?;
                let place = BucketRef { limits: &share, ..step.place };
                let steps = [Step { place, op: Op::Take { costs, term: *term } }];
                let call =
                    OwnedTransaction::new(&Transaction { id: self.call.id, steps: &steps, metered: false });
                Some((
                    turn,
                    ItemOp { call: Arc::new(call), step: 0, shards, metering: self.metering.clone() },
                ))
            }
            Op::Settle(usage) | Op::SettleExisting(usage) => {
                let shard = (usage.at.as_micros() % u64::from(SHARDS_MAX)) as u32 % shards;
                Some((shard, ItemOp { shards, ..self.clone() }))
            }
            _ => None,
        })
    }
}

impl OpResult {
    /// The verdict with the item that something was taken from.
    fn marked(self, shard: u32, shards: u32) -> OpResult {
        match self {
            OpResult::Done(StepOutcome::Taken(Taken { at, remarks })) if shards > 1 => {
                let of_max = u64::from(SHARDS_MAX);
                let at = Tick::from_micros(at.as_micros() / of_max * of_max + u64::from(shard));
                OpResult::Done(StepOutcome::Taken(Taken { at, remarks }))
            }
            verdict => verdict,
        }
    }
}
