//! Items of buckets in the stream of the table.

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

/// For how long it is remembered that the remaining usage of an item is written down. The stream keeps its records for a
/// day.
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
    /// The usage that is not yet written down, by hour.
    pub(crate) unwritten: BTreeMap<u32, UnwrittenHour>,
}

impl Seen {
    /// Returns whether a key is that of an item of a bucket.
    pub(crate) fn is_item(key: &ItemKey) -> bool {
        key.sort == STATE
    }

    /// Decodes an item.
    ///
    /// # Errors
    ///
    /// [`BadItem`] if it is not one of ours.
    pub(crate) fn of(attributes: &Attributes) -> Result<Seen, BadItem> {
        let partition = read_text(attributes.get("PK")).unwrap_or_default();
        let (address, shard) =
            Address::parse(partition).ok_or_else(|| BadItem(format!("{partition:?} is no bucket")))?;
        let snapshot = ItemSnapshot::read(attributes)?;
        let unwritten = snapshot.counters.unwritten(&snapshot.stored.limits);
        Ok(Seen { address, shard, shards: snapshot.shards, revision: snapshot.revision, unwritten })
    }
}

/// Writes down the remaining usage of an item that is gone, once for each delivery of its end, unless its namespace is gone,
/// too. A mark that it is done is part of the same transaction.
pub(super) async fn write_expired_usage(
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

/// Returns whether a transaction was canceled because its namespace is closed, or because it was made before.
fn is_settled(reasons: &[CancelReason]) -> bool {
    reasons.iter().take(2).any(|reason| matches!(reason, CancelReason::Condition(_)))
}
