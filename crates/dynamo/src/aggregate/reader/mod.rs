//! Stream reader, for hosts without a Lambda.
//!
//! A stream is made of shards, each a log. A shard ends after some hours and goes on in others, its children. Records of
//! one item are always in one shard at a time, so they come in order if a shard is read after its parent.

mod checkpoint;
mod page;
mod shards;

use std::fmt;

use aws_sdk_dynamodbstreams::Client;
use tollgate_store::{Reply, StoreError};

use super::record::StreamRecord;
use crate::inner::DynamoStore;
use crate::service::CallFailure;
use crate::table;
use checkpoint::Checkpoints;
use page::StreamPage;
use shards::Shards;

/// Pages in a row without a record after which a shard that is still written to counts as read. The service also returns
/// empty pages before records.
const EMPTY_PAGES: u32 = 3;

/// Where a reader begins.
///
/// ```
/// use tollgate_dynamo::aggregate::StreamStart;
///
/// assert_ne!(StreamStart::Oldest, StreamStart::Latest);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// After the last record that was processed, or with the oldest if that is not known.
    Checkpoint,
    /// With the oldest record of the stream.
    Oldest,
    /// With what is written from now on.
    Latest,
}

/// Reads the stream of a table.
///
/// ```no_run
/// # async fn read() -> Result<(), Box<dyn std::error::Error>> {
/// use tollgate_dynamo::DynamoStore;
/// use tollgate_dynamo::aggregate::{StreamBatch, StreamProgress, StreamReader, StreamStart};
///
/// let store = DynamoStore::builder("limits").build().await?;
/// let mut reader = StreamReader::open(&store, StreamStart::Oldest).await?;
/// while let Some(batch) = reader.next_batch().await? {
///     let StreamBatch { records, .. } = &batch;
///     println!("{} records", records.len());
///     reader.pass(&batch);
/// }
/// let StreamProgress { open, ended, .. } = reader.progress();
/// println!("{open} shards are open, {ended} have ended");
/// # Ok(())
/// # }
/// ```
pub struct StreamReader {
    store: DynamoStore,
    client: Client,
    stream: String,
    shards: Shards,
    checkpoints: Checkpoints,
}

/// Records of one shard, in order.
///
/// # Examples
///
/// ```
/// use tollgate_dynamo::aggregate::{EventKind, StreamBatch};
///
/// /// Returns how many items of a batch have expired.
/// fn expired(batch: &StreamBatch) -> usize {
///     let removed = batch.records.iter().filter(|record| record.kind == EventKind::Remove);
///     removed.filter(|record| record.has_expired).count()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct StreamBatch {
    /// The records; there is at least one.
    pub records: Vec<StreamRecord>,
    shard: String,
    last: String,
    next: Option<String>,
}

/// The progress of a reader.
///
/// # Examples
///
/// ```
/// use tollgate_dynamo::aggregate::StreamProgress;
///
/// fn show(progress: StreamProgress) -> String {
///     format!("{} shards are open, {} have ended", progress.open, progress.ended)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamProgress {
    /// Shards that are being read.
    pub open: usize,
    /// Shards that are read to their ends.
    pub ended: usize,
}

impl StreamReader {
    /// Returns a reader of the stream of this table.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there is no stream, or it cannot be read.
    pub fn open(store: &DynamoStore, start: StreamStart) -> Reply<'_, Result<StreamReader, StoreError>> {
        let service = &store.0.service;
        Reply::later(service.within(async move {
            let table = table::describe(service).await.map_err(CallFailure::store_error)?;
            let Some(stream) = table.latest_stream_arn else {
                let why =
                    format!("table {:?} has no stream; enable one with NEW_AND_OLD_IMAGES", service.table);
                return Err(StoreError::Refused(why));
            };
            let client = Client::from_conf(service.streams.clone());
            let checkpoints = Checkpoints::read(store, start).await?;
            let mut reader =
                StreamReader { store: store.clone(), client, stream, shards: Shards::default(), checkpoints };
            reader.list_shards(start).await?;
            Ok(reader)
        }))
    }

    /// Returns the next records; `None` if there are none now. A batch that is not [done](StreamReader::done) comes again.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the stream cannot be read. A retry is allowed.
    pub fn next_batch(&mut self) -> Reply<'_, Result<Option<StreamBatch>, StoreError>> {
        let store = self.store.clone();
        Reply::later(store.0.service.within(self.read()))
    }

    /// Goes on after a batch, and writes a checkpoint to the table.
    ///
    /// # Cancel safety
    ///
    /// The batch may come again to another reader.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the checkpoint cannot be written.
    pub fn done<'a>(&'a mut self, batch: &'a StreamBatch) -> Reply<'a, Result<(), StoreError>> {
        self.pass(batch);
        let store = self.store.clone();
        Reply::later(async move { self.checkpoints.write(&store, &batch.shard, &batch.last).await })
    }

    /// Goes on after a batch, without a checkpoint: for readers that only show records.
    pub fn pass(&mut self, batch: &StreamBatch) {
        self.shards.went_on(&batch.shard, batch.next.clone(), Some(batch.last.clone()));
    }

    /// Returns how far it has read.
    pub fn progress(&self) -> StreamProgress {
        self.shards.progress()
    }

    async fn read(&mut self) -> Result<Option<StreamBatch>, StoreError> {
        self.shards.begin_round();
        while let Some(shard) = self.shards.next_to_read(EMPTY_PAGES) {
            let iterator = match self.shards.iterator(&shard) {
                Some(iterator) => iterator,
                None => self.iterator(&shard, self.shards.position(&shard)).await?,
            };
            match self.page(&iterator).await? {
                StreamPage::Read { records, last: Some(last), next } if !records.is_empty() => {
                    self.shards.holds(&shard, iterator);
                    return Ok(Some(StreamBatch { records, shard, last, next }));
                }
                StreamPage::Read { next, last, .. } => {
                    let has_ended = next.is_none();
                    self.shards.went_on(&shard, next, last);
                    if has_ended {
                        self.list_shards(StreamStart::Checkpoint).await?;
                    }
                }
                StreamPage::Expired => self.shards.lost_iterator(&shard),
                StreamPage::Trimmed => self.shards.fell_behind(&shard),
            }
        }
        // Children appear when their parents end, which may be while no process reads.
        self.list_shards(StreamStart::Checkpoint).await?;
        Ok(None)
    }

    /// Adds shards that are new.
    async fn list_shards(&mut self, start: StreamStart) -> Result<(), StoreError> {
        for shard in self.describe().await? {
            let position = self.checkpoints.position(&shard.id, start);
            self.shards.learn(shard, position);
        }
        self.shards.settle();
        Ok(())
    }
}

impl fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamReader").field("stream", &self.stream).finish_non_exhaustive()
    }
}
