//! The store type, and the state behind it.

use std::fmt;
use std::sync::Arc;

use tollgate_store::workers::Reopened;
use tollgate_store::{Reply, StoreError};

use crate::DynamoStoreBuilder;
use crate::bucket::{BucketSettings, Buckets};
use crate::service::{ServiceErrorCounts, TableService};

/// A store of buckets and records in a DynamoDB table. Cloning is cheap, and clones are one store. A forked process
/// connects by itself.
///
/// ```no_run
/// # async fn open() -> Result<(), tollgate_dynamo::DynamoOpenError> {
/// use tollgate_dynamo::DynamoStore;
///
/// let store = DynamoStore::builder("limits").build().await?;
/// println!("{}: {:?}", store.table(), store.error_counts());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DynamoStore(pub(crate) Reopened<Arc<DynamoInner>>);

pub(crate) struct DynamoInner {
    pub(crate) service: Arc<TableService>,
    pub(crate) buckets: Arc<Buckets>,
}

impl DynamoInner {
    pub(crate) fn new(
        service: TableService,
        settings: BucketSettings,
    ) -> Result<Arc<DynamoInner>, getrandom::Error> {
        let service = Arc::new(service);
        let buckets = Buckets::new(&service, settings)?;
        Ok(Arc::new(DynamoInner { service, buckets }))
    }
}

impl DynamoStore {
    /// Returns the builder of a store in the table of this name.
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

    /// Returns the name of the table.
    pub fn table(&self) -> &str {
        &self.0.service.table
    }

    /// Returns in how many items the bucket of an entity and a resource is; 0 if there is no such bucket.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the table cannot be read.
    pub fn shards_of<'a>(
        &'a self,
        namespace: &'a str,
        entity: &'a str,
        resource: &'a str,
    ) -> Reply<'a, Result<u32, StoreError>> {
        Reply::later(self.0.service.within(self.0.buckets.reader.count_shards(namespace, entity, resource)))
    }

    /// Returns how many attempts of calls failed since the store was opened, also where a later attempt succeeded.
    pub fn error_counts(&self) -> ServiceErrorCounts {
        self.0.service.counts.error_counts()
    }
}

impl fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoStore").field("table", &self.table()).finish_non_exhaustive()
    }
}
