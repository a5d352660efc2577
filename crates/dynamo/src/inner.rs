//! The store itself.

use std::fmt;
use std::sync::Arc;

use crate::DynamoStoreBuilder;
use crate::service::{Service, Troubles};

/// Buckets and records in a DynamoDB table. Cloning is cheap, and clones are one store.
#[derive(Clone)]
pub struct DynamoStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) service: Arc<Service>,
}

impl DynamoStore {
    /// A store in the table of this name.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), tollgate_dynamo::OpenError> {
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

    /// What went wrong with calls since the store was opened, also where another try went well.
    pub fn troubles(&self) -> Troubles {
        self.0.service.counts.troubles()
    }
}

impl fmt::Debug for DynamoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoStore").field("table", &self.table()).finish_non_exhaustive()
    }
}
