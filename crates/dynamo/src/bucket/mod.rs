//! Buckets: each an item of the table, or several.
//!
//! A call passes four stages: [`Dispatcher`] chooses how it is written, [`Submitter`] submits each of its operations to
//! the queue of one item, [`ItemExecutor`](item_executor::ItemExecutor) executes the queued operations on a snapshot of
//! the item, and [`ItemWriter`] sends the result in one request, with retries. What one item cannot decide goes to
//! [`MergedExecutor`](merged::MergedExecutor), and what several items have to decide together to
//! [`TransactionExecutor`](transact::TransactionExecutor).

mod address;
mod background;
mod bucket_reader;
mod counters;
mod dedup;
mod dispatch;
mod draft;
mod expression;
mod index;
mod item_executor;
pub(crate) mod item_op;
mod item_queue;
mod limits;
mod merged;
mod parts;
mod read;
mod scope;
mod send;
mod shard_map;
mod snapshot;
#[cfg(feature = "aggregate")]
mod stream;
mod submit;
mod transact;
mod usage_reader;
mod usage_writer;
mod values;
mod write;

use std::sync::{Arc, Weak};

use tollgate_core::{Limits, Span};
use tollgate_store::prefetch::Prefetch;
use tollgate_store::records::RecordsError;
use tollgate_store::usage::UsageRetention;
use tollgate_store::{OwnedTransaction, StoreError, TxnOutcome, WaitQueues};

#[cfg(feature = "aggregate")]
pub(crate) use address::Address;
use background::BackgroundJobs;
use bucket_reader::BucketReader;
use dispatch::Dispatcher;
use item_executor::ItemExecutor;
use send::ItemWriter;
use shard_map::ShardMap;
#[cfg(feature = "aggregate")]
pub(crate) use stream::Seen;
use submit::Submitter;
use usage_reader::UsageReader;
use usage_writer::UsageWriter;

use crate::service::TableService;

/// An item that is not one of ours: why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadItem(pub(crate) String);

/// The buckets of a table.
pub(crate) struct Buckets {
    service: Arc<TableService>,
    /// Where denied callers wait.
    pub(crate) wait_queues: WaitQueues,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) reader: Arc<BucketReader>,
    pub(crate) usage_reader: UsageReader,
    pub(crate) usage_writer: UsageWriter,
    pub(crate) jobs: Arc<BackgroundJobs>,
    submitter: Arc<Submitter>,
}

/// How a call that takes from several buckets, such as an entity's and its parent's, is written.
///
/// ```no_run
/// # async fn open() -> Result<(), tollgate_dynamo::DynamoOpenError> {
/// use tollgate_dynamo::{Chains, DynamoStore};
///
/// let store = DynamoStore::builder("limits").chains(Chains::Transaction).build().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chains {
    /// Each bucket for itself and all at once, wherever each of them is expected to admit: one write unit for each. What was
    /// taken is given back if one of them refuses. A process that is killed in between leaves what its calls under way took
    /// from some of the buckets and not from others: less than there is until it is refilled, and never more.
    #[default]
    Parallel,
    /// All in one transaction, always: two write units for each, and all or none of it even if the process is killed. Buckets
    /// are not split, because the items of a split one are not written together.
    Transaction,
}

/// Settings of buckets.
#[derive(Clone, Debug)]
pub(crate) struct BucketSettings {
    /// For how long a denial is cached.
    pub(crate) denial_cached: Span,
    /// Whether writes may be relative: what changes, rather than what will be.
    pub(crate) fast_path: bool,
    /// In how many items a new bucket is, and the most items of any bucket.
    pub(crate) shards_min: u32,
    pub(crate) shards_max: u32,
    /// How calls that take from several buckets are written.
    pub(crate) chains: Chains,
    /// Whether, and how far, to prefetch.
    pub(crate) prefetch: Option<Prefetch>,
    /// How long records of usage are kept.
    pub(crate) usage_retention: UsageRetention,
}

impl Default for BucketSettings {
    fn default() -> BucketSettings {
        BucketSettings {
            denial_cached: Span::from_secs(1),
            fast_path: true,
            shards_min: 1,
            shards_max: item_op::SHARDS_MAX,
            chains: Chains::default(),
            prefetch: None,
            usage_retention: UsageRetention::default(),
        }
    }
}

impl Buckets {
    pub(crate) fn new(
        service: &Arc<TableService>,
        settings: BucketSettings,
    ) -> Result<Arc<Buckets>, getrandom::Error> {
        let writer = ItemWriter::new(Arc::clone(service), settings)?;
        Ok(Arc::new_cyclic(|this: &Weak<Buckets>| {
            let jobs = Arc::new(BackgroundJobs::new(service.workers.handle().clone(), this.clone()));
            let items = ItemExecutor { writer, shards: ShardMap::default(), jobs: Arc::clone(&jobs) };
            let items = Arc::new(items);
            let reader = Arc::new(BucketReader::new(Arc::clone(&items)));
            let submitter = Submitter::new(items);
            Buckets {
                service: Arc::clone(service),
                wait_queues: WaitQueues::default(),
                dispatcher: Dispatcher::new(Arc::clone(&submitter), Arc::clone(&reader)),
                usage_reader: UsageReader::new(Arc::clone(&submitter), Arc::clone(&reader)),
                usage_writer: UsageWriter::new(Arc::clone(&submitter)),
                reader,
                jobs,
                submitter,
            }
        }))
    }

    /// Returns the most that may be held ahead of a bucket under these limits, of each; `None` if nothing is.
    pub(crate) fn prefetch_bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        self.submitter.prefetcher.bounds(limits)
    }

    /// Notifies the waiters for what a call that was applied gave back.
    pub(crate) fn notify_freed(&self, call: &OwnedTransaction, outcome: &TxnOutcome) {
        if matches!(outcome, TxnOutcome::Done(_)) && !self.wait_queues.is_empty() {
            call.with(|call| self.wait_queues.notify_freed(call));
        }
    }

    /// Doubles the items of a bucket.
    #[cfg(feature = "aggregate")]
    pub(crate) async fn double(&self, address: &Address) -> Result<(), StoreError> {
        self.submitter.merged.double(address).await
    }

    /// Writes down the remaining usage of an item that is gone.
    #[cfg(feature = "aggregate")]
    pub(crate) async fn write_expired_usage(&self, seen: &Seen, delivery: &str) -> Result<(), StoreError> {
        stream::write_expired_usage(&self.submitter.items.writer, seen, delivery).await
    }
}

/// Converts the error of a call without tests of records.
pub(crate) fn without_tests(error: RecordsError) -> StoreError {
    match error {
        RecordsError::Store(error) => error,
        other => StoreError::Refused(other.to_string()),
    }
}
