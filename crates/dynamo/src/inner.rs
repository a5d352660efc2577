//! The store itself.

use std::fmt;
use std::sync::{Arc, Weak};

use tollgate_store::workers::Reopened;
use tollgate_store::{OwnedTransaction, Reply, StoreError, TxnOutcome, WaitQueues};

use crate::DynamoStoreBuilder;
use crate::bucket::Buckets;
use crate::service::{ServiceErrorCounts, TableService};

/// Buckets and records in a DynamoDB table. Cloning is cheap, and clones are one store. A process that is forked off connects by
/// itself.
#[derive(Clone)]
pub struct DynamoStore(pub(crate) Reopened<Arc<DynamoInner>>);

pub(crate) struct DynamoInner {
    pub(crate) service: Arc<TableService>,
    pub(crate) buckets: Buckets,
    /// Where those wait who were denied.
    pub(crate) wait_queues: WaitQueues,
    /// Itself, for background work.
    pub(crate) this: Weak<DynamoInner>,
}

impl DynamoInner {
    pub(crate) fn new(service: TableService, buckets: Buckets) -> Arc<DynamoInner> {
        Arc::new_cyclic(|this| DynamoInner {
            service: Arc::new(service),
            buckets,
            wait_queues: WaitQueues::default(),
            this: this.clone(),
        })
    }

    /// An id unlike any other, which begins with the time: later ones are larger.
    pub(crate) fn new_holder_id(&self) -> u128 {
        let millis = u128::from(self.service.clock.now().as_micros() / 1_000);
        let high = u128::from(getrandom::u32().unwrap_or_default() & 0xFFFF);
        // Without randomness the counter alone tells those of one process apart.
        let low = getrandom::u64().unwrap_or_else(|_| self.buckets.count());
        millis << 80 | high << 64 | u128::from(low)
    }

    /// A call was applied: notifies the waiters for what it gave back, which look again.
    pub(crate) fn after(&self, call: &OwnedTransaction, applied: &TxnOutcome) {
        if matches!(applied, TxnOutcome::Done(_)) && !self.wait_queues.is_empty() {
            call.with(|call| self.wait_queues.notify_freed(call));
        }
    }
}

impl DynamoStore {
    /// A store in the table of this name.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), tollgate_dynamo::DynamoOpenError> {
    /// use tollgate_dynamo::DynamoStore;
    ///
    /// let store = DynamoStore::builder("limits").region("eu-west-1").build().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(table: impl Into<String>) -> DynamoStoreBuilder {
        DynamoStoreBuilder::new(table.into())
    }

    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.0.service.table
    }

    /// In how many items the bucket of an entity and a resource is; 0 if there is no such bucket.
    pub fn shards_of<'a>(
        &'a self,
        namespace: &'a str,
        entity: &'a str,
        resource: &'a str,
    ) -> Reply<'a, Result<u32, StoreError>> {
        Reply::later(self.0.service.within(self.0.count_shards(namespace, entity, resource)))
    }

    /// What went wrong with calls since the store was opened, also where another try went well.
    pub fn troubles(&self) -> ServiceErrorCounts {
        self.0.service.counts.troubles()
    }
}

impl fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoStore").field("table", &self.table()).finish_non_exhaustive()
    }
}
