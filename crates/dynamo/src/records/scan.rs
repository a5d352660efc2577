//! Scan of the whole table.

use aws_sdk_dynamodb::operation::scan::ScanOutput;
use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_store::StoreError;
use tollgate_store::records::{Cursor, Index, ItemKey, PAGE_MAX, Page};

use super::expression::Words;
use crate::attributes::{EXPIRES, expiry_of, key_attributes, key_of, namespace_attributes, text_of};
use crate::service::{Attributes, CallFailure, TableService};
use crate::table::{IndexNames, PARTITION, SORT, STATE, TTL, index_names};

/// How many pages of the service are read to fill one of ours. Nearly all of a table is in the index, so most pages are
/// empty.
const EMPTY_PAGES_MAX: usize = 100;

/// Returns the keys of the records whose attributes do not place them in the index of their namespace. An item that has only one key
/// of an index is not in it, and the service reports no error.
pub(super) async fn unindexed(
    service: &TableService,
    after: Option<Cursor>,
) -> Result<Page<ItemKey>, StoreError> {
    let after = after.as_ref().map(Cursor::parts::<2>).transpose()?;
    let mut start = after.map(|[partition, sort]| key_attributes(&ItemKey::new(partition, sort)));
    let mut items = Vec::new();
    for _ in 0..EMPTY_PAGES_MAX {
        let answer = read(service, start).await.map_err(CallFailure::store_error)?;
        let now = service.clock.now();
        let is_live = |found: &Attributes| expiry_of(found).is_none_or(|expires| expires > now);
        let found = answer.items.unwrap_or_default();
        items.extend(found.iter().filter(|found| is_live(found)).filter_map(misplaced));
        start = answer.last_evaluated_key;
        if !items.is_empty() || start.is_none() {
            break;
        }
    }
    let cursor = |last: &Attributes| Some(Cursor::of(&[text_of(last, PARTITION)?, text_of(last, SORT)?]));
    Ok(Page { items, next: start.as_ref().and_then(cursor) })
}

/// Returns the key of an item that is not where the index of its namespace should have it.
fn misplaced(found: &Attributes) -> Option<ItemKey> {
    let key = key_of(found)?;
    let is_placed = namespace_attributes(&key).iter().all(|(name, value)| found.get(name) == Some(value));
    (!is_placed).then_some(key)
}

async fn read(service: &TableService, start: Option<Attributes>) -> Result<ScanOutput, CallFailure> {
    let IndexNames { partition, sort, .. } = index_names(Index::Namespace);
    let mut words = Words::default();
    let wanted = [PARTITION, SORT, TTL, EXPIRES, partition, sort].map(|name| words.name(name)).join(", ");
    // Buckets are not records, and are most of a table.
    let state = words.value(AttributeValue::S(STATE.into()));
    let filter = format!("{} <> {state}", words.name(SORT));
    let limit = i32::try_from(PAGE_MAX).unwrap_or(i32::MAX);
    let read = || {
        let scan = service.client.scan().table_name(&service.table).consistent_read(true);
        scan.projection_expression(&wanted)
            .filter_expression(&filter)
            .set_expression_attribute_names(words.names())
            .set_expression_attribute_values(words.values())
            .set_exclusive_start_key(start.clone())
            .limit(limit)
            .send()
    };
    service.with_retries(read).await
}
