//! The store type, and the state behind it.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use tollgate_store::prefetch::{Prefetch, Prefetcher};
use tollgate_store::records::RecordsError;
use tollgate_store::usage::UsageRetention;
use tollgate_store::workers::{Background, Reopened, time_ordered_id};
use tollgate_store::{OwnedTransaction, StoreError, TxnOutcome, WaitQueues};

use crate::background::RETRIED_FOR;
use crate::builder::RedisStoreBuilder;
use crate::call_log::CallLog;
use crate::queue::Claims;
use crate::service::{RedisService, ServerErrorCounts};

/// A store of buckets and records in Redis or Valkey. Cloning is cheap, and clones are one store. A forked process connects
/// by itself.
///
/// ```no_run
/// # async fn open() -> Result<(), tollgate_redis::RedisOpenError> {
/// use tollgate_redis::RedisStore;
///
/// let store = RedisStore::builder("redis://127.0.0.1:6379").build().await?;
/// println!("{store:?}: {:?}", store.error_counts());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore(pub(crate) Reopened<Arc<RedisInner>>);

pub(crate) struct RedisInner {
    pub(crate) service: RedisService,
    /// Where callers wait that were denied.
    pub(crate) wait_queues: WaitQueues,
    /// What these callers claim, as the server knows it.
    pub(crate) claims: Claims,
    /// Serves calls from what is held ahead, if that was chosen.
    pub(crate) prefetcher: Prefetcher<RedisInner>,
    /// The calls that it served.
    pub(crate) calls: CallLog,
    /// How long records of usage are kept.
    pub(crate) usage_retention: UsageRetention,
    /// Background work, by the names of the buckets.
    pub(crate) background: Background<Vec<u8>>,
    /// How many buckets were made since some were last swept, and how many records that expire.
    pub(crate) made: AtomicUsize,
    pub(crate) expiring: AtomicUsize,
    /// Itself, for background work.
    pub(crate) this: Weak<RedisInner>,
}

impl RedisInner {
    pub(crate) fn new(
        service: RedisService,
        prefetch: Option<Prefetch>,
        usage_retention: UsageRetention,
    ) -> Arc<RedisInner> {
        let runtime = service.workers.handle().clone();
        Arc::new_cyclic(|this| RedisInner {
            service,
            wait_queues: WaitQueues::default(),
            claims: Claims::new(),
            prefetcher: Prefetcher::new(prefetch, this.clone(), runtime.clone()),
            calls: CallLog::default(),
            usage_retention,
            background: Background::new(runtime, RETRIED_FOR),
            made: AtomicUsize::new(0),
            expiring: AtomicUsize::new(0),
            this: this.clone(),
        })
    }

    pub(crate) fn new_holder_id(&self) -> u128 {
        time_ordered_id(self.service.time.clock().now())
    }

    /// Notifies the waiters for what a call that was applied gave back.
    pub(crate) fn notify_freed(&self, call: &OwnedTransaction, outcome: &TxnOutcome) {
        if matches!(outcome, TxnOutcome::Done(_)) && !self.wait_queues.is_empty() {
            call.with(|call| self.wait_queues.notify_freed(call));
        }
    }
}

impl RedisStore {
    /// Returns the builder of a store at this address: `redis://`, `rediss://`, `redis+sentinel://` or `redis+cluster://`.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), tollgate_redis::RedisOpenError> {
    /// use tollgate_redis::RedisStore;
    ///
    /// let store = RedisStore::builder("redis://127.0.0.1:6379").build().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(url: impl AsRef<str>) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url.as_ref())
    }

    /// Returns how many attempts of calls failed since the store was opened, also where a later attempt succeeded.
    pub fn error_counts(&self) -> ServerErrorCounts {
        self.0.service.counts.error_counts()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("url", self.0.service.link.url()).finish_non_exhaustive()
    }
}

/// Converts the error of a call without tests of records.
pub(crate) fn without_tests(error: RecordsError) -> StoreError {
    match error {
        RecordsError::Store(error) => error,
        other => StoreError::BadCall(other.to_string()),
    }
}
