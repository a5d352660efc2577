//! Reading items of buckets.

use tollgate_store::StoreError;

use super::BadItem;
use super::address::Address;
use super::snapshot::{self, ItemSnapshot};
use crate::records;
use crate::service::{Attributes, CallFailure, TableService};

/// How many items can be read at once.
const READ_MAX: usize = 100;

/// Reads an item; `None` if there is none.
pub(super) async fn read_item(
    service: &TableService,
    address: &Address,
    shard: u32,
) -> Result<Option<ItemSnapshot>, StoreError> {
    let read = || {
        let request = service.client.get_item().table_name(&service.table).consistent_read(true);
        request.set_key(Some(snapshot::key(address, shard))).send()
    };
    let found = service.with_retries(read).await.map_err(CallFailure::store_error)?;
    found.item.map(|item| parse_item(address, &item)).transpose()
}

/// Reads items, and returns them in the order of their keys.
pub(super) async fn read_items(
    service: &TableService,
    items: &[(&Address, u32)],
) -> Result<Vec<Option<ItemSnapshot>>, StoreError> {
    if let [(address, shard)] = items {
        return Ok(vec![read_item(service, address, *shard).await?]);
    }
    let partitions: Vec<String> = items.iter().map(|(address, shard)| address.partition(*shard)).collect();
    let mut found: Vec<Option<ItemSnapshot>> = vec![None; items.len()];
    for start in (0..items.len()).step_by(READ_MAX) {
        let end = items.len().min(start + READ_MAX);
        let keys = items[start..end].iter().map(|(address, shard)| snapshot::key(address, *shard)).collect();
        for item in records::read_items(service, keys).await.map_err(CallFailure::store_error)? {
            let partition = super::values::read_text(item.get("PK")).unwrap_or_default();
            if let Some(index) = partitions.iter().position(|other| other == partition) {
                found[index] = Some(parse_item(items[index].0, &item)?);
            }
        }
    }
    Ok(found)
}

/// Parses the item of a bucket.
///
/// # Errors
///
/// [`StoreError::Refused`] with the bucket, if the item is not one of ours.
pub(super) fn parse_item(address: &Address, item: &Attributes) -> Result<ItemSnapshot, StoreError> {
    ItemSnapshot::read(item).map_err(|BadItem(why)| {
        let what = format!("{:?} of namespace {:?}", address.key, address.namespace);
        StoreError::Refused(format!("the item of bucket {what} cannot be read: {why}"))
    })
}
