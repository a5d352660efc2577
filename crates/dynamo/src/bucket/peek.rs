//! Looking at buckets, with nothing taken.

use std::sync::Arc;

use tollgate_core::{Denial, Status};
use tollgate_store::{Kept, OwnedCall, Place, Step, StoreError};

use super::address::Address;
use super::look::look_at_all;
use crate::inner::Inner;

impl Inner {
    /// How every step that takes would fare now.
    pub(crate) async fn ask(&self, call: Arc<OwnedCall>) -> Result<Vec<Denial>, StoreError> {
        let takes: Vec<Step<'_>> = call.steps().filter(|step| step.takes().is_some()).collect();
        let mut denials = Vec::new();
        for (step, (kept, now)) in takes.iter().zip(self.kept(&takes).await?) {
            denials.extend(kept.ask(step, now));
        }
        Ok(denials)
    }

    /// How every limit of the bucket of a call's only step stands.
    pub(crate) async fn peek(&self, call: Arc<OwnedCall>) -> Result<Vec<Status>, StoreError> {
        let steps: Vec<Step<'_>> = call.steps().collect();
        let kept = self.kept(&steps).await?;
        let statuses = steps.iter().zip(kept).map(|(step, (kept, now))| kept.peek(step.place.limits, now));
        Ok(statuses.flatten().collect())
    }

    /// The buckets of steps as they are, or fresh ones, and the time that they are seen at.
    async fn kept(&self, steps: &[Step<'_>]) -> Result<Vec<(Kept, tollgate_core::Tick)>, StoreError> {
        let places: Vec<Place<'_>> = steps.iter().map(|step| step.place).collect();
        let addresses = places.iter().map(Address::of).collect::<Result<Vec<_>, _>>()?;
        let items: Vec<(&Address, u32)> = addresses.iter().map(|address| (address, 0)).collect();
        let images = look_at_all(&self.service, &items).await?;
        let seen = places.iter().zip(&addresses).zip(images).map(|((place, address), image)| {
            let (last, now) = (self.buckets.lane(address).last(), self.service.clock.now());
            let kept = image.and_then(|image| image.live(last, now)).map(|image| image.kept);
            (kept.unwrap_or_else(|| Kept::fresh(place.limits)), now)
        });
        Ok(seen.collect())
    }
}
