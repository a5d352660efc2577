//! A DynamoDB table as the store.

use std::sync::Arc;

use tollgate::store::Backend;
use tollgate_dynamo::{Chains, DynamoOpenError, DynamoStore, DynamoStoreBuilder};

use crate::settings::{CliSettings, DynamodbUrl};

/// Opens the table.
pub(super) fn open(url: &DynamodbUrl, settings: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    Ok(Arc::new(open_table(url, settings)?))
}

/// Returns whether the table exists. If that cannot be known it returns true, and opening the table reports why.
pub(super) fn exists(url: &DynamodbUrl, settings: &CliSettings) -> bool {
    let opened = builder(url, settings).create_table(false).build().wait();
    !matches!(opened, Err(DynamoOpenError::NoTable(..)))
}

/// Returns what the table lacks.
pub(super) fn damages(url: &DynamodbUrl, settings: &CliSettings) -> Result<Vec<String>, String> {
    let store = open_table(url, settings)?;
    store.shortcomings().wait().map_err(|why| why.to_string())
}

/// Opens the table. The error says how to create one.
pub(super) fn open_table(url: &DynamodbUrl, settings: &CliSettings) -> Result<DynamoStore, String> {
    builder(url, settings).build().wait().map_err(|error| match error {
        DynamoOpenError::NoTable(table, whereabouts) => {
            let with_create = DynamodbUrl { creates: true, ..url.clone() };
            format!(
                "there is no table {table:?} in {whereabouts}; name another one, or create it with the template in \
                 deploy/, or with --store 'dynamodb:{with_create}'"
            )
        }
        error => error.to_string(),
    })
}

fn builder(url: &DynamodbUrl, settings: &CliSettings) -> DynamoStoreBuilder {
    let mut builder = DynamoStore::builder(&url.table).timeout(settings.store_timeout.value);
    if let Some(region) = &url.region {
        builder = builder.region(region);
    }
    if let Some(endpoint) = &url.endpoint {
        builder = builder.endpoint(endpoint);
    }
    let chains = if url.transacts_chains { Chains::Transaction } else { Chains::Parallel };
    let builder = builder.usage_retention(settings.usage_retention.value.0);
    builder.create_table(url.creates).chains(chains)
}
