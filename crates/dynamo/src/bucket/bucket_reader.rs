//! Reading buckets, with nothing taken.

use std::sync::Arc;

use tollgate_core::{Denial, Status, Tick};
use tollgate_store::{BucketRef, OwnedTransaction, Step, StoreError, StoredBucket};

use super::address::Address;
use super::item_executor::ItemExecutor;
use super::parts::merged;
use super::read::{read_item, read_items};
use super::snapshot::ItemSnapshot;

/// The items of one bucket, in the order of their numbers; none if the first is not there.
pub(super) type Items = Vec<Option<ItemSnapshot>>;

/// Reads buckets as they are.
pub(crate) struct BucketReader {
    items: Arc<ItemExecutor>,
}

impl BucketReader {
    pub(super) fn new(items: Arc<ItemExecutor>) -> BucketReader {
        BucketReader { items }
    }

    /// Returns a denial for every step that takes and would be denied now.
    pub(crate) async fn evaluate(&self, call: &OwnedTransaction) -> Result<Vec<Denial>, StoreError> {
        self.items.jobs.await_detached(call).await;
        let takes: Vec<Step<'_>> = call.steps().filter(|step| step.takes().is_some()).collect();
        let mut denials = Vec::new();
        for (step, (stored, now)) in takes.iter().zip(self.stored(&takes).await?) {
            denials.extend(stored.evaluate(step, now));
        }
        Ok(denials)
    }

    /// Returns the status of every limit of the bucket of a call's only step.
    pub(crate) async fn peek(&self, call: &OwnedTransaction) -> Result<Vec<Status>, StoreError> {
        self.items.jobs.await_detached(call).await;
        let steps: Vec<Step<'_>> = call.steps().collect();
        let stored = self.stored(&steps).await?;
        let statuses =
            steps.iter().zip(stored).map(|(step, (stored, now))| stored.peek(step.place.limits, now));
        Ok(statuses.flatten().collect())
    }

    /// Returns the buckets of steps as they are, or fresh ones, and the time that they are seen at.
    async fn stored(&self, steps: &[Step<'_>]) -> Result<Vec<(StoredBucket, Tick)>, StoreError> {
        let places: Vec<BucketRef<'_>> = steps.iter().map(|step| step.place).collect();
        let addresses = places.iter().map(Address::of).collect::<Result<Vec<_>, _>>()?;
        let mut seen = Vec::new();
        for (place, snapshot) in places.iter().zip(self.merged_buckets(&addresses).await?) {
            let fresh = || StoredBucket::fresh(place.limits);
            seen.push((snapshot.map_or_else(fresh, |snapshot| snapshot.stored), self.items.now()));
        }
        Ok(seen)
    }

    /// Returns buckets as they are now, each put together; `None` for one that is not there, or has expired.
    pub(super) async fn merged_buckets(
        &self,
        addresses: &[Address],
    ) -> Result<Vec<Option<ItemSnapshot>>, StoreError> {
        let buckets = self.items_of(addresses).await?;
        Ok(addresses
            .iter()
            .zip(&buckets)
            .map(|(address, items)| self.merged_bucket(address, items))
            .collect())
    }

    /// Returns a bucket put together of its items; `None` if it is not there, or has expired.
    pub(super) fn merged_bucket(
        &self,
        address: &Address,
        items: &[Option<ItemSnapshot>],
    ) -> Option<ItemSnapshot> {
        let (last, now) = (self.items.shards.first(address).last(), self.items.now());
        let (first, others) = items.split_first()?;
        let first = first.clone()?.live(last, now)?;
        if others.is_empty() {
            return Some(first);
        }
        let mut snapshots = vec![Some(first)];
        snapshots.extend_from_slice(others);
        merged(&snapshots, last, now)
    }

    /// Returns in how many items a bucket is; 0 if there is no such bucket.
    pub(crate) async fn count_shards(
        &self,
        namespace: &str,
        entity: &str,
        resource: &str,
    ) -> Result<u32, StoreError> {
        let address = Address::pair(namespace, entity, resource);
        let first = read_item(self.items.service(), &address, 0).await?;
        Ok(first.map_or(0, |snapshot| snapshot.shards))
    }

    /// Returns the items of buckets as they are, expired or not.
    pub(super) async fn items_of(&self, addresses: &[Address]) -> Result<Vec<Items>, StoreError> {
        let firsts: Vec<(&Address, u32)> = addresses.iter().map(|address| (address, 0)).collect();
        let mut buckets = Vec::new();
        for (address, first) in addresses.iter().zip(read_items(self.items.service(), &firsts).await?) {
            let Some(first) = first else {
                buckets.push(Vec::new());
                continue;
            };
            let mut items = Vec::new();
            if first.shards > 1 {
                self.items.shards.set_shards(address, first.shards);
                let others: Vec<(&Address, u32)> = (1..first.shards).map(|shard| (address, shard)).collect();
                items = read_items(self.items.service(), &others).await?;
            }
            items.insert(0, Some(first));
            buckets.push(items);
        }
        Ok(buckets)
    }
}
