//! Writing usage: from the counters of items to the records of usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_store::StoreError;
use tollgate_store::records::Write;
use tollgate_store::usage::marked_hour;

use super::address::Address;
use super::counters::UnwrittenHour;
use super::draft::ItemDraft;
use super::expression::Expression;
use super::read::parse_item;
use super::send::ItemWriter;
use super::snapshot::ItemSnapshot;
use super::submit::Submitter;
use super::values::number;
use super::write;
use crate::records;
use crate::service::{Attempts, CallFailure, CancelReason};

/// Writes the usage that items count to the records of usage.
pub(crate) struct UsageWriter {
    submitter: Arc<Submitter>,
}

impl UsageWriter {
    pub(super) fn new(submitter: Arc<Submitter>) -> UsageWriter {
        UsageWriter { submitter }
    }

    /// Adds what was used of a bucket to the records of usage, each hour once.
    pub(super) async fn write(&self, address: &Address) -> Result<(), StoreError> {
        self.submitter.return_prefetched(address).await;
        self.write_item(address, 0).await?;
        for shard in 1..self.submitter.items.shards.shards(address) {
            self.write_item(address, shard).await?;
        }
        Ok(())
    }

    /// Adds what was used of one item of a bucket to the records of usage.
    pub(crate) async fn write_item(&self, address: &Address, shard: u32) -> Result<(), StoreError> {
        let Some((entity, resource)) = address.key.pair() else { return Ok(()) };
        let items = &self.submitter.items;
        let queue = items.shards.queue(address, shard);
        let mut state = queue.state.lock().await;
        items.resolve_unknown(address, &queue, &mut state).await?;
        items.read(address, &queue, &mut state).await?;
        if let Some(snapshot) = state.snapshot() {
            items.shards.set_shards(address, snapshot.shards);
        }
        let mut attempts = Attempts::start();
        while let Some(snapshot) = state.snapshot() {
            let unwritten = snapshot.counters.unwritten(&snapshot.stored.limits);
            let Some((hour, aside)) = unwritten.into_iter().next() else { return Ok(()) };
            let retention = &items.writer.settings.usage_retention;
            let writes =
                aside.sums(hour).map(|sums| sums.writes(&address.space(), entity, resource, retention));
            let now = items.now();
            match write_hour(&items.writer, address, snapshot, hour, &writes.unwrap_or_default()).await? {
                Ok(snapshot) => state.update(Some(snapshot), now),
                Err(snapshot) => {
                    state.update(snapshot, now);
                    if items.service().pause_after_miss(&mut attempts).await? {
                        items.read(address, &queue, &mut state).await?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Writes down one hour of an item; returns the item as it is then, or as it is if it was not what it had to be.
async fn write_hour(
    writer: &ItemWriter,
    address: &Address,
    snapshot: &ItemSnapshot,
    hour: u32,
    writes: &[Write],
) -> Result<Result<ItemSnapshot, Option<ItemSnapshot>>, StoreError> {
    let now = writer.service.clock.now();
    let stamp = writer.next_stamp(now);
    let (mut expression, mut after) = written(snapshot, hour);
    write::add_stamp(&mut expression, Some(snapshot), &stamp);
    after.writers.insert(stamp.writer.into(), stamp.seq);
    let mut items = vec![writer.update_item(address, snapshot.shard, &expression)];
    items.extend(records::transact_items(&writer.service, writes, now)?);
    match writer.service.transact(items).await {
        Ok(()) => Ok(Ok(after)),
        Err(CallFailure::Canceled(reasons)) => match reasons.into_iter().next() {
            Some(CancelReason::Condition(old)) => {
                let snapshot = old.map(|old| parse_item(address, &old)).transpose()?;
                // An earlier attempt was made, and its answer lost.
                Ok(match snapshot {
                    Some(snapshot) if stamp.is_of(&snapshot) => Ok(snapshot),
                    other => Err(other),
                })
            }
            _ => Err(StoreError::Refused("a record of usage cannot be written".into())),
        },
        Err(failure) => Err(failure.store_error()),
    }
}

/// Corrects the usage of a bucket that is not there any more, unless its namespace is not either.
pub(super) async fn correct_usage(
    writer: &ItemWriter,
    address: &Address,
    draft: &ItemDraft,
) -> Result<(), StoreError> {
    let Some((entity, resource)) = address.key.pair().filter(|_| !draft.corrections.is_empty()) else {
        return Ok(());
    };
    let mut aside = UnwrittenHour::default();
    for (name, amount) in &draft.corrections {
        *aside.amounts.entry(name.clone()).or_default() += amount;
    }
    let sums = aside.sums(marked_hour(draft.now, draft.corrections_of));
    let retention = &writer.settings.usage_retention;
    let writes =
        sums.map(|sums| sums.writes(&address.space(), entity, resource, retention)).unwrap_or_default();
    let mut items = vec![writer.open_check(&address.namespace)];
    items.extend(records::transact_items(&writer.service, &writes, draft.now)?);
    match writer.service.transact(items).await {
        // Of a namespace that is closed nothing is counted.
        Ok(()) | Err(CallFailure::Canceled(_)) => Ok(()),
        Err(failure) => Err(failure.store_error()),
    }
}

/// Returns the update that marks one hour as written down, whatever else was used meanwhile, and the item after it.
fn written(snapshot: &ItemSnapshot, hour: u32) -> (Expression, ItemSnapshot) {
    let mut after = snapshot.clone();
    let mut expression = Expression::default();
    let limits = &snapshot.stored.limits;
    if after.counters.aside.remove(&hour).is_some() {
        let value = |aside: &BTreeMap<u32, UnwrittenHour>| {
            let mut attributes = crate::service::Attributes::new();
            let counters = super::counters::UsageCounters { aside: aside.clone(), ..Default::default() };
            counters.write(limits, &mut attributes);
            attributes.remove("pu")
        };
        expression.require_is("pu", value(&snapshot.counters.aside));
        match value(&after.counters.aside) {
            Some(left) => expression.set("pu", left),
            None => expression.remove("pu"),
        }
    }
    if snapshot.counters.hour == Some(hour) {
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
