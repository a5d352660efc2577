use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tollgate_store::{Reply, StoreError, join_all};

use super::archive::{Archive, ArchiveFile, files};
use super::batch::{HotBucket, RecordBatch, UnwrittenItem};
use super::outcome::BatchOutcome;
use super::record::StreamRecord;
use crate::bucket::Seen;
use crate::inner::DynamoStore;

/// How many items are written down at once.
const AT_ONCE: usize = 16;

/// Processes the stream of a table. See the [module](crate::aggregate) for what that is.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use tollgate_dynamo::DynamoStore;
/// use tollgate_dynamo::aggregate::{Aggregator, Folder, StreamReader, StreamStart};
///
/// let store = DynamoStore::builder("limits").build().await?;
/// let aggregator = Aggregator::new(store.clone()).with_archive(Folder::new("audit"));
/// let mut reader = StreamReader::open(&store, StreamStart::Checkpoint).await?;
/// while let Some(batch) = reader.next_batch().await? {
///     let outcome = aggregator.handle(&batch.records).await;
///     println!("{} items written down", outcome.written);
///     reader.done(&batch).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Aggregator {
    store: DynamoStore,
    archive: Option<Arc<dyn Archive>>,
}

/// Why records failed, by their index in the batch.
type Failures = BTreeMap<usize, (String, String)>;

impl Aggregator {
    /// Returns an aggregator that writes usage to the table of the stream.
    pub fn new(store: DynamoStore) -> Aggregator {
        Aggregator { store, archive: None }
    }

    /// Sets the archive of audit events that have expired. Without one they are lost.
    #[must_use]
    pub fn with_archive(mut self, archive: impl Archive + 'static) -> Aggregator {
        self.archive = Some(Arc::new(archive));
        self
    }

    /// Processes a batch of records. Records that fail are in the outcome, with all later records of the same item; the
    /// others are done.
    ///
    /// # Cancel safety
    ///
    /// What was done is done, and is not done again when the batch is delivered again.
    pub fn handle<'a>(&'a self, records: &'a [StreamRecord]) -> Reply<'a, BatchOutcome> {
        Reply::later(self.store.0.service.within(self.work(records)))
    }

    async fn work(&self, records: &[StreamRecord]) -> BatchOutcome {
        let batch = RecordBatch::of(records);
        let mut outcome = BatchOutcome {
            records: records.len(),
            unreadable: batch.unreadable.clone(),
            ..BatchOutcome::default()
        };
        let mut failures = Failures::new();
        let mut fail = |index: usize, why: &dyn fmt::Display| {
            let sequence = records.get(index).map(|record| record.sequence.clone()).unwrap_or_default();
            failures.entry(index).or_insert_with(|| (sequence, why.to_string()));
        };
        for (changed, written) in self.write_down(&batch.changed).await {
            match written {
                Ok(()) => outcome.written += 1,
                Err(why) => changed.records.iter().for_each(|index| fail(*index, &why)),
            }
        }
        for (index, written) in self.write_expired_usage(records, &batch.expired_usage).await {
            match written {
                Ok(()) => outcome.remains += 1,
                Err(why) => fail(index, &why),
            }
        }
        match self.archive.as_ref().map(|archive| (archive, files(&batch.audit))) {
            None => {}
            Some((_, Err(why))) => batch.audit.iter().for_each(|(index, _)| fail(*index, &why)),
            Some((archive, Ok(files))) => {
                for ArchiveFile { name, contents, records } in files {
                    match archive.put(&name, contents).await {
                        Ok(()) => outcome.archived += records.len(),
                        Err(why) => records.into_iter().for_each(|index| fail(index, &why)),
                    }
                }
            }
        }
        for hot in batch.hot() {
            outcome.doubled += usize::from(self.double(hot).await);
        }
        outcome.fail(failures);
        outcome
    }

    /// Doubles the items of a hot bucket, unless that was done since the record: a batch may come twice. A failure does no
    /// harm: a process that writes to a bucket that is too hot doubles it as well.
    async fn double(&self, HotBucket { address, shards }: &HotBucket) -> bool {
        let Some((entity, resource)) = address.key.pair() else { return false };
        let buckets = &self.store.0.buckets;
        let now = buckets.reader.count_shards(&address.namespace, entity, resource).await;
        now == Ok(*shards) && buckets.double(address).await.is_ok()
    }

    async fn write_down<'b>(
        &self,
        changed: &'b [UnwrittenItem],
    ) -> Vec<(&'b UnwrittenItem, Result<(), StoreError>)> {
        let mut done = Vec::with_capacity(changed.len());
        for some in changed.chunks(AT_ONCE) {
            let usage = &self.store.0.buckets.usage_writer;
            let writes = some.iter().map(|item| usage.write_item(&item.seen.address, item.seen.shard));
            done.extend(some.iter().zip(join_all(writes.collect()).await));
        }
        done
    }

    async fn write_expired_usage(
        &self,
        records: &[StreamRecord],
        expired: &[(usize, Seen)],
    ) -> Vec<(usize, Result<(), StoreError>)> {
        let mut done = Vec::with_capacity(expired.len());
        for some in expired.chunks(AT_ONCE) {
            let write = |(index, seen): &(usize, Seen)| {
                let delivery = records.get(*index).map(|record| record.sequence.clone()).unwrap_or_default();
                let (buckets, seen) = (Arc::clone(&self.store.0.buckets), seen.clone());
                async move { buckets.write_expired_usage(&seen, &delivery).await }
            };
            let written = join_all(some.iter().map(write).collect()).await;
            done.extend(some.iter().map(|(index, _)| *index).zip(written));
        }
        done
    }
}

impl fmt::Debug for Aggregator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let archives = self.archive.is_some();
        f.debug_struct("Aggregator").field("store", &self.store).field("archives", &archives).finish()
    }
}
