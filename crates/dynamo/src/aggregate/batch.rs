//! A batch of records, sorted by what has to be done.

use std::collections::BTreeMap;

use super::record::{EventKind, StreamRecord};
use super::write_rate::WriteRate;
use crate::bucket::{Address, BadItem, Seen};
use crate::service::Attributes;

/// The prefix of the sort keys of audit events.
const AUDIT: &str = "#AUDIT#";

/// What a batch asks for. Records are named by their index in it.
#[derive(Default)]
pub(super) struct RecordBatch<'a> {
    /// Items with usage that is not written down, once each, and all their records.
    pub(super) changed: Vec<UnwrittenItem>,
    /// Items that have expired with usage that is not written down.
    pub(super) expired_usage: Vec<(usize, Seen)>,
    /// Audit events that have expired.
    pub(super) audit: Vec<(usize, &'a Attributes)>,
    /// Items of ours that cannot be read.
    pub(super) unreadable: Vec<String>,
    write_rates: BTreeMap<String, (HotBucket, WriteRate)>,
}

/// An item with usage that is not written down.
pub(super) struct UnwrittenItem {
    pub(super) seen: Seen,
    pub(super) records: Vec<usize>,
}

/// A bucket of which an item is hot, and how many items it was in then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HotBucket {
    pub(super) address: Address,
    pub(super) shards: u32,
}

impl<'a> RecordBatch<'a> {
    pub(super) fn of(records: &'a [StreamRecord]) -> RecordBatch<'a> {
        let mut batch = RecordBatch::default();
        let mut places = BTreeMap::new();
        for (index, record) in records.iter().enumerate() {
            let (Some(key), Some(image)) = (record.key(), record.image()) else { continue };
            if Seen::is_item(&key) {
                match Seen::of(image) {
                    Ok(seen) => batch.add_item(&mut places, index, record, seen),
                    Err(BadItem(why)) => batch.unreadable.push(format!("{}: {why}", key.partition)),
                }
            } else if record.has_expired && key.sort.starts_with(AUDIT) {
                batch.audit.push((index, image));
            }
        }
        batch
    }

    fn add_item(
        &mut self,
        places: &mut BTreeMap<(String, u32), usize>,
        index: usize,
        record: &StreamRecord,
        seen: Seen,
    ) {
        let partition = seen.address.partition(seen.shard);
        let (hot, rate) = self.write_rates.entry(partition.clone()).or_insert_with(|| {
            (HotBucket { address: seen.address.clone(), shards: seen.shards }, WriteRate::default())
        });
        hot.shards = hot.shards.max(seen.shards);
        rate.add(seen.revision, record.written_at);
        // Nothing to write down: our own writes are in the stream, too, and must not cause others.
        if seen.unwritten.is_empty() {
            return;
        }
        match record.kind {
            EventKind::Remove if record.has_expired => self.expired_usage.push((index, seen)),
            // A caller that deletes a bucket has its usage written down first, or means to forget it.
            EventKind::Remove => {}
            EventKind::Insert | EventKind::Modify => {
                let place = *places.entry((partition, seen.shard)).or_insert(self.changed.len());
                match self.changed.get_mut(place) {
                    Some(changed) => changed.records.push(index),
                    None => self.changed.push(UnwrittenItem { seen, records: vec![index] }),
                }
            }
        }
    }

    /// Returns the buckets with an item that is written too often, once each.
    pub(super) fn hot(&self) -> Vec<&HotBucket> {
        let mut hot: Vec<&HotBucket> =
            self.write_rates.values().filter(|(_, rate)| rate.is_hot()).map(|(hot, _)| hot).collect();
        hot.dedup_by(|one, two| one.address == two.address);
        hot
    }
}
