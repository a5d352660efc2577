//! A DynamoDB table as the store.

use std::time::Duration;

use tollgate_dynamo::{Chains, DynamoOpenError, DynamoStore, DynamoStoreBuilder};
use tollgate_store::Reply;

use crate::{DynamodbUrl, OpenError, OpenOptions};

/// How long credit that is held ahead is kept when no caller takes it: as long as on Redis.
const PREFETCH_IDLE: Duration = Duration::from_secs(1);

impl DynamodbUrl {
    /// Opens the table, for a program that needs more of it than a [`Backend`](tollgate_store::Backend), such as its stream.
    /// It is begun at once.
    ///
    /// # Cancel safety
    ///
    /// A table that is being created may be created.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use tollgate_open::{DynamodbUrl, OpenOptions};
    ///
    /// let url: DynamodbUrl = "limits?region=eu-west-1".parse()?;
    /// let table = url.open_table(&OpenOptions::default()).wait()?;
    /// println!("{:?}", table.shortcomings().wait()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_table(&self, options: &OpenOptions) -> Reply<'static, Result<DynamoStore, OpenError>> {
        let opening = self.builder(options).build();
        let creating = DynamodbUrl { creates: true, ..self.clone() };
        Reply::later(async move {
            opening.await.map_err(|error| match error {
                DynamoOpenError::NoTable(table, location) => {
                    OpenError::NoTable { table, location, creating: format!("dynamodb:{creating}") }
                }
                error => OpenError::Dynamodb(error),
            })
        })
    }

    /// Returns whether the table exists. If that cannot be known it returns true, and opening the table reports why. A table
    /// that would not be created counts as existing, too: opening it is an error.
    pub(crate) fn exists(&self, options: &OpenOptions) -> Reply<'static, bool> {
        if !self.creates {
            return Reply::ready(true);
        }
        let opening = self.builder(options).create_table(false).build();
        Reply::later(async { !matches!(opening.await, Err(DynamoOpenError::NoTable(..))) })
    }

    fn builder(&self, options: &OpenOptions) -> DynamoStoreBuilder {
        let chains = if self.transacts_chains { Chains::Transaction } else { Chains::Parallel };
        let mut builder = DynamoStore::builder(&self.table)
            .usage_retention(options.usage_retention)
            .create_table(self.creates)
            .chains(chains);
        if let Some(timeout) = options.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(region) = &self.region {
            builder = builder.region(region);
        }
        if let Some(endpoint) = &self.endpoint {
            builder = builder.endpoint(endpoint);
        }
        match self.prefetch {
            Some(percent) => builder.prefetch(percent, PREFETCH_IDLE),
            None => builder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_url_are_those_of_the_store() {
        let url: DynamodbUrl =
            "limits?region=eu-west-1&create=true&chains=transaction&prefetch=7".parse().unwrap();
        let shown = format!("{:?}", url.builder(&OpenOptions::default()));
        for said in ["\"limits\"", "eu-west-1", "creates: true", "Transaction", "percent: 7"] {
            assert!(shown.contains(said), "{said} is not in {shown}");
        }
    }
}
