//! Queries of a partition, and of an index.

use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_store::StoreError;
use tollgate_store::records::{Cursor, Index, Item, ItemKey, PAGE_MAX, Page, Query};

use super::expression::Words;
use super::get::{batch, by_key};
use crate::attributes::{EXPIRES, expiry_of, item_of, key_attributes, key_of, text_of};
use crate::service::{Attributes, CallFailure, TableService};
use crate::table::{IndexNames, PARTITION, SORT, STATE, TTL, index_names};

/// How many pages of the service are read to fill one of ours. An empty page is allowed, but a run of them would be slow for
/// the caller.
const EMPTY_PAGES_MAX: usize = 10;

/// Returns the records of a partition, in the order of their sort keys.
pub(super) async fn query(service: &TableService, query: &Query) -> Result<Page<Item>, StoreError> {
    let after = query.after.as_ref().map(Cursor::parts::<1>).transpose()?;
    let mut start = after.map(|[sort]| key_attributes(&ItemKey::new(&query.partition, sort)));
    check_start(query, after.map(|[sort]| sort))?;
    let names = IndexNames { name: "", partition: PARTITION, sort: SORT };
    let mut items = Vec::new();
    for _ in 0..EMPTY_PAGES_MAX {
        let answer = read(service, names, query, start).await.map_err(CallFailure::store_error)?;
        let now = service.clock.now();
        let found = answer.items.unwrap_or_default().into_iter().filter_map(item_of);
        items.extend(found.filter(|item| !item.has_expired(now)));
        start = answer.last_evaluated_key;
        if !items.is_empty() || start.is_none() {
            break;
        }
    }
    let next = start.as_ref().and_then(|last| Some(Cursor::of(&[text_of(last, SORT)?])));
    Ok(Page { items, next })
}

/// Returns the keys of the records that an index has in a partition of its own.
///
/// The index follows the table by a moment, and has keys only. So its keys are looked up: records that are gone, have moved
/// or have expired are left out. New records may be missing.
pub(super) async fn find(
    service: &TableService,
    index: Index,
    query: &Query,
) -> Result<Page<ItemKey>, StoreError> {
    let names = index_names(index);
    let after = query.after.as_ref().map(Cursor::parts::<3>).transpose()?;
    let mut start = after.map(|[place, partition, sort]| {
        let mut start = key_attributes(&ItemKey::new(partition, sort));
        start.insert(names.partition.into(), AttributeValue::S(query.partition.clone()));
        start.insert(names.sort.into(), AttributeValue::S(place.into()));
        start
    });
    check_start(query, after.map(|[place, ..]| place))?;
    let mut items = Vec::new();
    for _ in 0..EMPTY_PAGES_MAX {
        let answer = read(service, names, query, start).await.map_err(CallFailure::store_error)?;
        start = answer.last_evaluated_key;
        let found = answer.items.unwrap_or_default();
        items.extend(live(service, index, &found).await.map_err(CallFailure::store_error)?);
        if !items.is_empty() || start.is_none() {
            break;
        }
    }
    let cursor = |last: &Attributes| {
        Some(Cursor::of(&[text_of(last, names.sort)?, text_of(last, PARTITION)?, text_of(last, SORT)?]))
    };
    Ok(Page { items, next: start.as_ref().and_then(cursor) })
}

/// Refuses the cursor of another query, which the service would refuse.
fn check_start(query: &Query, sort: Option<&str>) -> Result<(), StoreError> {
    if sort.is_some_and(|sort| !sort.starts_with(&query.prefix)) {
        return Err(StoreError::BadCall("the cursor is none of this query's".into()));
    }
    Ok(())
}

async fn read(
    service: &TableService,
    names: IndexNames,
    query: &Query,
    start: Option<Attributes>,
) -> Result<QueryOutput, CallFailure> {
    let mut words = Words::default();
    let partition = words.value(AttributeValue::S(query.partition.clone()));
    let mut condition = format!("{} = {partition}", words.name(names.partition));
    if !query.prefix.is_empty() {
        let prefix = words.value(AttributeValue::S(query.prefix.clone()));
        condition += &format!(" AND begins_with({}, {prefix})", words.name(names.sort));
    }
    let limit = i32::try_from(query.limit.clamp(1, PAGE_MAX)).unwrap_or(i32::MAX);
    let index = (!names.name.is_empty()).then(|| names.name.to_owned());
    let read = || {
        let query = service.client.query().table_name(&service.table).scan_index_forward(!query.newest_first);
        query
            .consistent_read(index.is_none())
            .set_index_name(index.clone())
            .key_condition_expression(&condition)
            .set_expression_attribute_names(words.names())
            .set_expression_attribute_values(words.values())
            .set_exclusive_start_key(start.clone())
            .limit(limit)
            .send()
    };
    service.with_retries(read).await
}

/// Returns the keys of an index whose records still have these index keys and have not expired.
async fn live(
    service: &TableService,
    index: Index,
    found: &[Attributes],
) -> Result<Vec<ItemKey>, CallFailure> {
    let names = index_names(index);
    // Buckets are in the same indexes, and are not records.
    let keys = || found.iter().filter_map(|at| Some((at, key_of(at)?))).filter(|(_, key)| key.sort != STATE);
    // A secret neither moves nor expires, and many callers that may list it may not read it.
    let asked: Vec<ItemKey> = keys().map(|(_, key)| key).filter(|key| !key.is_secret()).collect();
    let wanted = [PARTITION, SORT, TTL, EXPIRES, names.partition, names.sort];
    let there = by_key(batch(service, &asked.iter().collect::<Vec<_>>(), Some(&wanted)).await?);
    let now = service.clock.now();
    let is_live = |at: &Attributes, key: &ItemKey| {
        let is_there = there.get(key).is_some_and(|item| {
            let is_placed = [names.partition, names.sort].iter().all(|name| item.get(*name) == at.get(*name));
            is_placed && expiry_of(item).is_none_or(|expires| expires > now)
        });
        is_there || key.is_secret()
    };
    Ok(keys().filter(|(at, key)| is_live(at, key)).map(|(_, key)| key).collect())
}
