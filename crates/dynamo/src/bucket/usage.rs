//! Writing down what was used.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_store::StoreError;
use tollgate_store::records::Write;
use tollgate_store::usage::marked_hour;

use super::address::Address;
use super::counters::UnwrittenHour;
use super::draft::ItemDraft;
use super::expression::Expression;
use super::look::understand;
use super::snapshot::ItemSnapshot;
use super::values::number;
use super::write::{WriteStamp, stamp};
use crate::inner::DynamoInner;
use crate::records;
use crate::service::{CallFailure, CancelReason, Elapsed};

impl DynamoInner {
    /// Adds what was used of a bucket to the records of usage, each hour once.
    pub(crate) async fn write_usage_of(&self, address: &Address) -> Result<(), StoreError> {
        self.return_prefetched(address).await?;
        self.write_usage_of_item(address, 0).await?;
        for shard in 1..self.buckets.lane(address).shards() {
            self.write_usage_of_item(address, shard).await?;
        }
        Ok(())
    }

    /// The same for one item of a bucket.
    pub(crate) async fn write_usage_of_item(&self, address: &Address, shard: u32) -> Result<(), StoreError> {
        let Some((entity, resource)) = address.key.pair() else { return Ok(()) };
        let lane = self.buckets.part_lane(address, shard);
        let mut state = lane.state.lock().await;
        self.resolve_unknown(address, &lane, &mut state).await?;
        self.see(address, &lane, &mut state).await?;
        if let Some(image) = state.image() {
            self.buckets.lane(address).set_shards(image.shards);
        }
        let (watch, mut misses) = (Elapsed::start(), 0);
        while let Some(image) = state.image() {
            let unwritten = image.counters.unwritten(&image.kept.limits);
            let Some((hour, aside)) = unwritten.into_iter().next() else { return Ok(()) };
            let kept = &self.buckets.settings.usage_retention;
            let writes = aside.sums(hour).map(|sums| sums.writes(&address.space(), entity, resource, kept));
            let now = self.service.clock.now();
            match self.write_hour(address, image, hour, &writes.unwrap_or_default()).await? {
                Ok(image) => state.saw(Some(image), now),
                Err(image) => {
                    state.saw(image, now);
                    misses += 1;
                    if self.pause_after(misses, watch).await? {
                        self.see(address, &lane, &mut state).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes down one hour of an item; the item as it is then, or as it is if it was not what it had to be.
    async fn write_hour(
        &self,
        address: &Address,
        image: &ItemSnapshot,
        hour: u32,
        writes: &[Write],
    ) -> Result<Result<ItemSnapshot, Option<ItemSnapshot>>, StoreError> {
        let now = self.service.clock.now();
        let stroke = WriteStamp { writer: &self.buckets.writer, seq: self.buckets.next_seq(now) };
        let (mut expression, mut after) = written(image, hour);
        stamp(&mut expression, Some(image), &stroke);
        after.writers.insert(stroke.writer.into(), stroke.seq);
        let mut items = vec![self.update_item(address, image.shard, &expression)];
        items.extend(records::transact_items(&self.service, writes, now)?);
        match self.service.transact(items).await {
            Ok(()) => Ok(Ok(after)),
            Err(CallFailure::Canceled(reasons)) => match reasons.into_iter().next() {
                Some(CancelReason::Condition(old)) => {
                    let image = old.map(|old| understand(address, &old)).transpose()?;
                    // An earlier try was made, and its answer lost.
                    Ok(match image {
                        Some(image) if stroke.is_of(&image) => Ok(image),
                        other => Err(other),
                    })
                }
                _ => Err(StoreError::Refused("a record of usage cannot be written".into())),
            },
            Err(failure) => Err(failure.store_error()),
        }
    }

    /// Corrects the usage of a bucket that is not there any more, unless its namespace is not either.
    pub(super) async fn count_unbucketed(
        &self,
        address: &Address,
        draft: &ItemDraft,
    ) -> Result<(), StoreError> {
        let Some((entity, resource)) = address.key.pair().filter(|_| !draft.loose.is_empty()) else {
            return Ok(());
        };
        let mut aside = UnwrittenHour::default();
        draft
            .loose
            .iter()
            .for_each(|(name, amount)| *aside.amounts.entry(name.clone()).or_default() += amount);
        let sums = aside.sums(marked_hour(draft.now, draft.loose_of));
        let kept = &self.buckets.settings.usage_retention;
        let writes =
            sums.map(|sums| sums.writes(&address.space(), entity, resource, kept)).unwrap_or_default();
        let mut items = vec![self.open_check(&address.namespace)];
        items.extend(records::transact_items(&self.service, &writes, draft.now)?);
        match self.service.transact(items).await {
            // Of a namespace that is closed nothing is counted.
            Ok(()) | Err(CallFailure::Canceled(_)) => Ok(()),
            Err(failure) => Err(failure.store_error()),
        }
    }
}

/// The update that says of one hour that it is written down, whatever else was used meanwhile.
fn written(image: &ItemSnapshot, hour: u32) -> (Expression, ItemSnapshot) {
    let mut after = image.clone();
    let mut expression = Expression::default();
    let limits = &image.kept.limits;
    if after.counters.aside.remove(&hour).is_some() {
        let value = |aside: &BTreeMap<u32, UnwrittenHour>| {
            let mut attributes = crate::service::Attributes::new();
            let counters = super::counters::UsageCounters { aside: aside.clone(), ..Default::default() };
            counters.write(limits, &mut attributes);
            attributes.remove("pu")
        };
        expression.require_is("pu", value(&image.counters.aside));
        match value(&after.counters.aside) {
            Some(left) => expression.set("pu", left),
            None => expression.remove("pu"),
        }
    }
    if image.counters.hour == Some(hour) {
        expression.require("uh", "=", number(hour));
        let mut write_down = |name: String, count: &mut super::counters::WrittenCount| {
            expression.require(&name, "=", number(count.written));
            expression.set(&name, number(count.total));
            count.written = count.total;
        };
        write_down("ew".into(), &mut after.counters.events);
        for (limit, count) in
            limits.iter().zip(&mut after.counters.used).filter(|(limit, _)| !limit.is_resource())
        {
            write_down(format!("b_{}_tw", limit.name()), count);
        }
    }
    expression.add("rv", AttributeValue::N("1".into()));
    after.revision += 1;
    (expression, after)
}
