//! Checkpoints: how far the stream was read, in the table itself.

use std::collections::BTreeMap;

use tollgate_core::Span;
use tollgate_store::records::{Item, ItemKey, Query, Records, RecordsError, Write};
use tollgate_store::{Store as _, StoreError};

use super::super::record::StreamRecord;
use super::StreamStart;
use super::shards::ShardPosition;
use crate::inner::DynamoStore;

/// The partition of checkpoints, which belong to no namespace.
const PARTITION: &str = "_/STREAM#";

const PREFIX: &str = "#CHECKPOINT#";

/// How long a checkpoint is kept. The stream keeps its records for a day; older checkpoints are useless.
const KEPT: Span = Span::from_secs(3 * 86_400);

/// Returns whether a record is about a checkpoint.
pub(super) fn is_one(record: &StreamRecord) -> bool {
    record.key().is_some_and(|key| key.partition == PARTITION)
}

/// The last record that was processed, by shard.
#[derive(Default)]
pub(super) struct Checkpoints(BTreeMap<String, String>);

impl Checkpoints {
    pub(super) async fn read(store: &DynamoStore, start: StreamStart) -> Result<Checkpoints, StoreError> {
        let mut checkpoints = Checkpoints::default();
        if start != StreamStart::Checkpoint {
            return Ok(checkpoints);
        }
        let mut query = Query::prefix(PARTITION, PREFIX);
        loop {
            let page = store.query(&query).await.map_err(store_error)?;
            checkpoints.0.extend(page.items.iter().filter_map(|item| {
                Some((item.key.sort.strip_prefix(PREFIX)?.to_owned(), item.text("sequence")?.to_owned()))
            }));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(checkpoints),
            }
        }
    }

    pub(super) fn position(&self, shard: &str, start: StreamStart) -> ShardPosition {
        match (self.0.get(shard), start) {
            (Some(sequence), _) => ShardPosition::After(sequence.clone()),
            (None, StreamStart::Latest) => ShardPosition::Latest,
            // A shard that appears later is the child of one that was read: all of it is new.
            (None, StreamStart::Checkpoint | StreamStart::Oldest) => ShardPosition::Oldest,
        }
    }

    pub(super) async fn write(
        &mut self,
        store: &DynamoStore,
        shard: &str,
        sequence: &str,
    ) -> Result<(), StoreError> {
        self.0.insert(shard.into(), sequence.into());
        let mut item =
            Item::new(ItemKey::new(PARTITION, format!("{PREFIX}{shard}"))).with("sequence", sequence);
        item.expires = Some(store.clock().now() + KEPT);
        store.write(&[Write::Put(item, Vec::new())]).await.map_err(store_error)
    }
}

fn store_error(error: RecordsError) -> StoreError {
    crate::bucket::without_tests(error)
}
