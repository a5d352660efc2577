//! Looking at buckets, with nothing taken.

use std::sync::Arc;

use tollgate_core::{Denial, Status};
use tollgate_store::{Kept, OwnedCall, Place, Step, StoreError};

use super::address::Address;
use super::image::Image;
use super::look::look_at_all;
use super::parts::merged;
use crate::inner::Inner;

impl Inner {
    /// How every step that takes would fare now.
    pub(crate) async fn ask(&self, call: Arc<OwnedCall>) -> Result<Vec<Denial>, StoreError> {
        self.hear(&call).await;
        let takes: Vec<Step<'_>> = call.steps().filter(|step| step.takes().is_some()).collect();
        let mut denials = Vec::new();
        for (step, (kept, now)) in takes.iter().zip(self.kept(&takes).await?) {
            denials.extend(kept.ask(step, now));
        }
        Ok(denials)
    }

    /// How every limit of the bucket of a call's only step stands.
    pub(crate) async fn peek(&self, call: Arc<OwnedCall>) -> Result<Vec<Status>, StoreError> {
        self.hear(&call).await;
        let steps: Vec<Step<'_>> = call.steps().collect();
        let kept = self.kept(&steps).await?;
        let statuses = steps.iter().zip(kept).map(|(step, (kept, now))| kept.peek(step.place.limits, now));
        Ok(statuses.flatten().collect())
    }

    /// The buckets of steps as they are, or fresh ones, and the time that they are seen at.
    async fn kept(&self, steps: &[Step<'_>]) -> Result<Vec<(Kept, tollgate_core::Tick)>, StoreError> {
        let places: Vec<Place<'_>> = steps.iter().map(|step| step.place).collect();
        let addresses = places.iter().map(Address::of).collect::<Result<Vec<_>, _>>()?;
        let mut seen = Vec::new();
        for (place, image) in places.iter().zip(self.wholes(&addresses).await?) {
            let fresh = || Kept::fresh(place.limits);
            seen.push((image.map_or_else(fresh, |image| image.kept), self.service.clock.now()));
        }
        Ok(seen)
    }

    /// Buckets as they are now, each put together; `None` for one that is not there, or has expired.
    pub(super) async fn wholes(&self, addresses: &[Address]) -> Result<Vec<Option<Image>>, StoreError> {
        let firsts: Vec<(&Address, u32)> = addresses.iter().map(|address| (address, 0)).collect();
        let mut wholes = Vec::new();
        for (address, image) in addresses.iter().zip(look_at_all(&self.service, &firsts).await?) {
            let lane = self.buckets.lane(address);
            let (last, now) = (lane.last(), self.service.clock.now());
            let Some(first) = image.and_then(|image| image.live(last, now)) else {
                wholes.push(None);
                continue;
            };
            if first.shards == 1 {
                wholes.push(Some(first));
                continue;
            }
            lane.set_shards(first.shards);
            let others: Vec<(&Address, u32)> = (1..first.shards).map(|shard| (address, shard)).collect();
            let mut images = vec![Some(first)];
            images.extend(look_at_all(&self.service, &others).await?);
            wholes.push(merged(&images, last, now));
        }
        Ok(wholes)
    }
}
