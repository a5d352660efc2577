//! Bounds of the service, checked before a call.

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_store::StoreError;
use tollgate_store::records::{Change, Item, ItemKey, Write};

use crate::attributes::{attribute_name, attribute_of, attributes_of};
use crate::service::Attributes;

/// How large the partition of a key may be.
const PARTITION_BYTES_MAX: usize = 2_048;

/// How large the sort key may be.
const SORT_BYTES_MAX: usize = 1_024;

/// How large an item may be.
const ITEM_BYTES_MAX: usize = 400 * 1_024;

/// How large all items of a transaction may be.
const TRANSACTION_BYTES_MAX: usize = 4 << 20;

/// Checks that writes are within the bounds of the service.
///
/// # Errors
///
/// [`StoreError::BadCall`] with what is too large.
pub(super) fn check_writes(writes: &[Write]) -> Result<(), StoreError> {
    let mut sum = 0;
    for write in writes {
        check_key(write.key())?;
        let bytes = match write {
            Write::Put(item, _) => check_item(item)?,
            Write::Change(_, changes, _) => changes.iter().map(change_bytes).sum(),
            _ => 0,
        };
        sum += bytes;
    }
    if sum > TRANSACTION_BYTES_MAX {
        return bad(format!(
            "the writes have {sum} bytes together, and DynamoDB takes 4 MB; make fewer at once"
        ));
    }
    Ok(())
}

/// Checks that a key is within the bounds of the service.
///
/// # Errors
///
/// As [`check_writes`].
pub(super) fn check_key(key: &ItemKey) -> Result<(), StoreError> {
    let parts = [("partition", &key.partition, PARTITION_BYTES_MAX), ("sort key", &key.sort, SORT_BYTES_MAX)];
    for (what, part, most) in parts {
        if part.len() > most {
            return bad(format!("a {what} has {} bytes, and DynamoDB takes {most}", part.len()));
        }
    }
    Ok(())
}

fn check_item(item: &Item) -> Result<usize, StoreError> {
    item.indexed.iter().try_for_each(|(_, place)| check_key(place))?;
    let bytes = item_bytes(&attributes_of(item));
    if bytes > ITEM_BYTES_MAX {
        let key = &item.key;
        return bad(format!(
            "{key:?} has {bytes} bytes, and DynamoDB takes {ITEM_BYTES_MAX}; say less in it"
        ));
    }
    Ok(bytes)
}

fn bad<T>(why: String) -> Result<T, StoreError> {
    Err(StoreError::BadCall(why))
}

fn change_bytes(change: &Change) -> usize {
    match change {
        Change::Set(field, value) => attribute_name(field).len() + bytes(&attribute_of(value)),
        Change::Include(field, member) => field.len() + member.len(),
        _ => 0,
    }
}

fn item_bytes(attributes: &Attributes) -> usize {
    attributes.iter().map(|(name, value)| name.len() + bytes(value)).sum()
}

/// Returns the size of a value as the service counts it.
fn bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len().div_ceil(2) + 2,
        AttributeValue::Ss(members) => members.iter().map(String::len).sum(),
        AttributeValue::M(fields) => {
            3 + fields.iter().map(|(name, value)| 1 + name.len() + bytes(value)).sum::<usize>()
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: usize) -> Write {
        let key = ItemKey::new("ns/A", bytes.to_string());
        Write::Put(Item::new(key).with("x", "x".repeat(bytes)), vec![])
    }

    #[test]
    fn what_is_too_large_is_refused_with_the_bound() {
        let key = |partition: usize, sort: usize| {
            Write::Delete(ItemKey::new("p".repeat(partition), "s".repeat(sort)), vec![])
        };
        assert_eq!(check_writes(&[put(400_000), key(2_048, 1_024)]), Ok(()));
        let many = |count: usize| (0..count).map(|more| put(400_000 + more)).collect::<Vec<_>>();
        assert_eq!(check_writes(&many(10)), Ok(()));
        for writes in [vec![put(409_600)], many(11), vec![key(2_049, 1)], vec![key(1, 1_025)]] {
            assert!(matches!(check_writes(&writes), Err(StoreError::BadCall(_))));
        }
    }
}
