//! `Records` for the store.

mod bounds;
mod change;
mod expression;
mod get;
mod mixed;
mod query;
mod scan;
mod write;

use aws_sdk_dynamodb::types::TransactWriteItem;
use tollgate_core::Tick;
use tollgate_store::records::{
    Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write, check_keys, check_writes,
};
use tollgate_store::{Reply, StoreError};

pub(crate) use get::read_items;

use crate::DynamoStore;
use crate::service::TableService;

pub(crate) use write::Assumptions;

/// # Cancel safety
///
/// A write that is cancelled may be made or not, but never in part.
impl Records for DynamoStore {
    /// Returns the records as they were at one instant, up to 4 MB of them; beyond, each as it was when it was read.
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        let service = &self.0.service;
        let checked = check_keys(keys).and_then(|()| keys.iter().try_for_each(bounds::check_key));
        Reply::later(service.within(async move {
            checked?;
            let found = get::get_many(service, keys).await?;
            let now = service.clock.now();
            Ok(found.into_iter().map(|item| item.filter(|item| !item.has_expired(now))).collect())
        }))
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        if let Err(error) = check_writes(writes) {
            return Reply::ready(Err(error.into()));
        }
        let service = &self.0.service;
        Reply::later(service.within(write::write(service, writes)))
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        let service = &self.0.service;
        Reply::later(service.within(async move { Ok(query::query(service, query).await?) }))
    }

    /// Returns keys of records that exist. The indexes of DynamoDB follow the table by a moment, so new records may be missing.
    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        let service = &self.0.service;
        Reply::later(service.within(async move { Ok(query::find(service, index, query).await?) }))
    }

    fn unindexed(&self, after: Option<Cursor>) -> Reply<'_, Result<Page<ItemKey>, RecordsError>> {
        let service = &self.0.service;
        Reply::later(service.within(async move { Ok(scan::unindexed(service, after).await?) }))
    }
}

/// Returns the writes as parts of a transaction with others, one each. They assume that no record has expired; see
/// [`Assumptions`] for what to do if it has.
pub(crate) fn transact_items(
    service: &TableService,
    writes: &[Write],
    now: Tick,
) -> Result<Vec<TransactWriteItem>, StoreError> {
    bounds::check_writes(writes)?;
    match Assumptions::new(writes).items(&service.table, now) {
        Ok(items) => Ok(items),
        Err(RecordsError::Store(error)) => Err(error),
        Err(error) => Err(StoreError::BadCall(error.to_string())),
    }
}

/// Returns the first of the writes whose tests fail, if any does.
pub(crate) async fn failing(service: &TableService, writes: &[Write]) -> Result<Option<usize>, StoreError> {
    let tested: Vec<ItemKey> = writes.iter().map(|write| write.key().clone()).collect();
    let found = get::get_many(service, &tested).await?;
    let now = service.clock.now();
    let live = found.into_iter().map(|item| item.filter(|item| !item.has_expired(now)));
    Ok(writes.iter().zip(live).position(|(write, item)| !write.passes(item.as_ref())))
}

/// Makes all writes, or none.
pub(crate) async fn write(service: &TableService, writes: &[Write]) -> Result<(), RecordsError> {
    write::write(service, writes).await
}
