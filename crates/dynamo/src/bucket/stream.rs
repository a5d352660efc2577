//! A bucket as the stream of the table shows it.

use std::collections::BTreeMap;

use tollgate_core::Span;
use tollgate_store::StoreError;
use tollgate_store::records::{Item, ItemKey, Test, Write};
use tollgate_store::usage::usage_partition;

use super::BadItem;
use super::address::{Address, STATE};
use super::counters::UnwrittenHour;
use super::send::ItemWriter;
use super::snapshot::ItemSnapshot;
use super::values::read_text;
use crate::records;
use crate::service::{Attributes, CallFailure, CancelReason};

/// For how long it is remembered that what was left of an item is written down. The stream keeps its records for a day.
const REMEMBERED: Span = Span::from_secs(3 * 86_400);

/// An item of a bucket, in the stream.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) address: Address,
    pub(crate) shard: u32,
    /// How many items the bucket was in.
    pub(crate) shards: u32,
    /// How often the item was written.
    pub(crate) revision: u64,
    /// What is not yet written down as usage, by hour.
    pub(crate) unwritten: BTreeMap<u32, UnwrittenHour>,
}

impl Seen {
    /// Whether a key is that of an item of a bucket.
    pub(crate) fn is_item(key: &ItemKey) -> bool {
        key.sort == STATE
    }

    /// The item of these attributes.
    ///
    /// # Errors
    ///
    /// [`BadItem`] if it is not one of ours, however often it is read.
    pub(crate) fn of(attributes: &Attributes) -> Result<Seen, BadItem> {
        let partition = read_text(attributes.get("PK")).unwrap_or_default();
        let (address, shard) =
            Address::parse(partition).ok_or_else(|| BadItem(format!("{partition:?} is no bucket")))?;
        let image = ItemSnapshot::read(attributes)?;
        let unwritten = image.counters.unwritten(&image.kept.limits);
        Ok(Seen { address, shard, shards: image.shards, revision: image.revision, unwritten })
    }
}

/// Writes down what was left of an item that is gone, once for each delivery of its end, unless its namespace is gone,
/// too. That it is done is marked in the same transaction.
pub(super) async fn write_remains(
    writer: &ItemWriter,
    seen: &Seen,
    delivery: &str,
) -> Result<(), StoreError> {
    let Some((entity, resource)) = seen.address.key.pair() else { return Ok(()) };
    for (hour, aside) in &seen.unwritten {
        let Some(sums) = aside.sums(*hour) else { continue };
        let (space, now) = (seen.address.space(), writer.service.clock.now());
        let sort = format!("#DONE#{resource}#{}#{hour}#{delivery}", seen.shard);
        let mut mark = Item::new(ItemKey::new(usage_partition(&space, entity), sort));
        mark.expires = Some(now + REMEMBERED);
        let mut writes = vec![Write::Put(mark, vec![Test::Absent])];
        let retention = &writer.settings.usage_retention;
        writes.extend(sums.writes(&space, entity, resource, retention));
        let mut items = vec![writer.open_check(&seen.address.namespace)];
        items.extend(records::transact_items(&writer.service, &writes, now)?);
        match writer.service.transact(items).await {
            Ok(()) => {}
            Err(CallFailure::Canceled(reasons)) if is_settled(&reasons) => {}
            Err(failure) => return Err(failure.store_error()),
        }
    }
    Ok(())
}

/// Whether a transaction was canceled because its namespace is closed, or because it was made before.
fn is_settled(reasons: &[CancelReason]) -> bool {
    reasons.iter().take(2).any(|reason| matches!(reason, CancelReason::Condition(_)))
}
