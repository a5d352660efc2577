//! The store itself.

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use tollgate_store::prefetch::Prefetch;
use tollgate_store::records::RecordsError;
use tollgate_store::usage::UsageRetention;
use tollgate_store::workers::Reopened;
use tollgate_store::{OwnedTransaction, StoreError, TxnOutcome, WaitQueues};

use crate::background::DetachedCalls;
use crate::builder::RedisStoreBuilder;
use crate::prefetch::Prefetcher;
use crate::queue::Claims;
use crate::service::{RedisService, ServerErrorCounts};

/// Buckets and records in Redis or Valkey. Cloning is cheap, and clones are one store. A process that is forked off connects by itself.
#[derive(Clone)]
pub struct RedisStore(pub(crate) Reopened<Arc<RedisInner>>);

pub(crate) struct RedisInner {
    pub(crate) service: RedisService,
    /// Where those wait who were denied.
    pub(crate) wait_queues: WaitQueues,
    /// What they claim, as the server knows it.
    pub(crate) claims: Claims,
    /// What is held ahead, if that was chosen.
    pub(crate) ahead: Prefetcher,
    /// How long usage is kept that is written down.
    pub(crate) usage_retention: UsageRetention,
    /// Detached calls that were not tried yet.
    pub(crate) unheard: DetachedCalls,
    /// How many buckets were made since some were last looked at, and how many records that expire.
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
        Arc::new_cyclic(|this| RedisInner {
            service,
            wait_queues: WaitQueues::default(),
            claims: Claims::new(),
            ahead: Prefetcher::new(prefetch),
            usage_retention,
            unheard: DetachedCalls::default(),
            made: AtomicUsize::new(0),
            expiring: AtomicUsize::new(0),
            this: this.clone(),
        })
    }

    /// An id unlike any other, which begins with the time: later ones are larger.
    pub(crate) fn new_holder_id(&self) -> u128 {
        let millis = u128::from(self.service.time.clock().now().as_micros() / 1_000);
        let high = u128::from(getrandom::u32().unwrap_or_default() & 0xFFFF);
        // Without randomness a counter alone tells those of one process apart.
        let low = getrandom::u64().unwrap_or_else(|_| crate::apply::unique_id().0 as u64);
        millis << 80 | high << 64 | u128::from(low)
    }

    /// A call was applied: notifies the waiters for what it gave back, which look again.
    pub(crate) fn after(&self, call: &OwnedTransaction, applied: &TxnOutcome) {
        if matches!(applied, TxnOutcome::Done(_)) && !self.wait_queues.is_empty() {
            call.with(|call| self.wait_queues.notify_freed(call));
        }
    }
}

impl RedisStore {
    /// A store at this address: `redis://`, `rediss://`, `redis+sentinel://` or `redis+cluster://`.
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

    /// What went wrong with calls since the store was opened, also where another try went well.
    pub fn troubles(&self) -> ServerErrorCounts {
        self.0.service.counts.troubles()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("url", self.0.service.link.url()).finish_non_exhaustive()
    }
}

/// What is wrong with a call that tests nothing.
pub(crate) fn without_tests(error: RecordsError) -> StoreError {
    match error {
        RecordsError::Store(error) => error,
        other => StoreError::BadCall(other.to_string()),
    }
}
