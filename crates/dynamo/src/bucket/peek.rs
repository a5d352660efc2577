//! Looking at buckets, with nothing taken.

use std::sync::Arc;

use tollgate_core::{Denial, Status};
use tollgate_store::{BucketRef, OwnedTransaction, Step, StoreError, StoredBucket};

use super::address::Address;
use super::look::look_at_all;
use super::parts::merged;
use super::snapshot::ItemSnapshot;
use super::viewing::Items;
use crate::inner::DynamoInner;

impl DynamoInner {
    /// How every step that takes would fare now.
    pub(crate) async fn ask(&self, call: Arc<OwnedTransaction>) -> Result<Vec<Denial>, StoreError> {
        self.await_detached(&call).await;
        let takes: Vec<Step<'_>> = call.steps().filter(|step| step.takes().is_some()).collect();
        let mut denials = Vec::new();
        for (step, (kept, now)) in takes.iter().zip(self.kept(&takes).await?) {
            denials.extend(kept.ask(step, now));
        }
        Ok(denials)
    }

    /// How every limit of the bucket of a call's only step stands.
    pub(crate) async fn peek(&self, call: Arc<OwnedTransaction>) -> Result<Vec<Status>, StoreError> {
        self.await_detached(&call).await;
        let steps: Vec<Step<'_>> = call.steps().collect();
        let kept = self.kept(&steps).await?;
        let statuses = steps.iter().zip(kept).map(|(step, (kept, now))| kept.peek(step.place.limits, now));
        Ok(statuses.flatten().collect())
    }

    /// The buckets of steps as they are, or fresh ones, and the time that they are seen at.
    async fn kept(&self, steps: &[Step<'_>]) -> Result<Vec<(StoredBucket, tollgate_core::Tick)>, StoreError> {
        let places: Vec<BucketRef<'_>> = steps.iter().map(|step| step.place).collect();
        let addresses = places.iter().map(Address::of).collect::<Result<Vec<_>, _>>()?;
        let mut seen = Vec::new();
        for (place, image) in places.iter().zip(self.merged_buckets(&addresses).await?) {
            let fresh = || StoredBucket::fresh(place.limits);
            seen.push((image.map_or_else(fresh, |image| image.kept), self.service.clock.now()));
        }
        Ok(seen)
    }

    /// Buckets as they are now, each put together; `None` for one that is not there, or has expired.
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

    /// A bucket put together of its items; `None` if it is not there, or has expired.
    pub(super) fn merged_bucket(
        &self,
        address: &Address,
        items: &[Option<ItemSnapshot>],
    ) -> Option<ItemSnapshot> {
        let (last, now) = (self.buckets.lane(address).last(), self.service.clock.now());
        let (first, others) = items.split_first()?;
        let first = first.clone()?.live(last, now)?;
        if others.is_empty() {
            return Some(first);
        }
        let mut images = vec![Some(first)];
        images.extend_from_slice(others);
        merged(&images, last, now)
    }

    /// The items of buckets as they are, expired or not.
    pub(super) async fn items_of(&self, addresses: &[Address]) -> Result<Vec<Items>, StoreError> {
        let firsts: Vec<(&Address, u32)> = addresses.iter().map(|address| (address, 0)).collect();
        let mut buckets = Vec::new();
        for (address, first) in addresses.iter().zip(look_at_all(&self.service, &firsts).await?) {
            let Some(first) = first else {
                buckets.push(Vec::new());
                continue;
            };
            let mut items = Vec::new();
            if first.shards > 1 {
                self.buckets.lane(address).set_shards(first.shards);
                let others: Vec<(&Address, u32)> = (1..first.shards).map(|shard| (address, shard)).collect();
                items = look_at_all(&self.service, &others).await?;
            }
            items.insert(0, Some(first));
            buckets.push(items);
        }
        Ok(buckets)
    }
}
