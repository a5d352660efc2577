//! Checks that all stores make, so that all of them refuse the same.

use std::collections::HashSet;

use super::{Change, GETS_MAX, Index, Item, ItemKey, Value, WRITES_MAX, Write};
use crate::StoreError;

/// Checks that these records may be read at once. Every store calls it first.
///
/// # Errors
///
/// [`StoreError::BadCall`] for more than [`GETS_MAX`], and for a key with an empty part.
pub fn check_keys(keys: &[ItemKey]) -> Result<(), StoreError> {
    if keys.len() > GETS_MAX {
        return bad(format!("{} records are asked for at once, and at most {GETS_MAX} may be", keys.len()));
    }
    keys.iter().try_for_each(check_key)
}

/// Checks that these writes may be made together. Every store calls it first.
///
/// # Errors
///
/// [`StoreError::BadCall`] for more than [`WRITES_MAX`], two writes to one record, a key with an empty part, two
/// places in one index or one in [`Index::Namespace`], and a set of nothing.
pub fn check_writes(writes: &[Write]) -> Result<(), StoreError> {
    if writes.len() > WRITES_MAX {
        return bad(format!("{} writes are made together, and at most {WRITES_MAX} may be", writes.len()));
    }
    let mut seen = HashSet::new();
    for write in writes {
        let key = write.key();
        check_key(key)?;
        if !seen.insert(key) {
            return bad(format!("two writes are about {key:?}; make it one"));
        }
        match write {
            Write::Put(item, _) => check_item(item)?,
            Write::Change(_, changes, _) => changes.iter().try_for_each(check_change)?,
            Write::Delete(..) | Write::Check(..) => {}
        }
    }
    Ok(())
}

fn bad<T>(why: String) -> Result<T, StoreError> {
    Err(StoreError::BadCall(why))
}

fn check_key(key: &ItemKey) -> Result<(), StoreError> {
    if key.partition.is_empty() || key.sort.is_empty() {
        return bad(format!("{key:?} has an empty part"));
    }
    Ok(())
}

fn check_item(item: &Item) -> Result<(), StoreError> {
    let mut seen = HashSet::new();
    for (index, place) in &item.indexed {
        check_place(*index, place)?;
        if !seen.insert(index) {
            return bad(format!("{:?} has two places in {index:?}", item.key));
        }
    }
    item.fields.values().try_for_each(check_value)
}

fn check_change(change: &Change) -> Result<(), StoreError> {
    match change {
        Change::Set(_, value) => check_value(value),
        Change::Place(index, place) => check_place(*index, place),
        _ => Ok(()),
    }
}

fn check_place(index: Index, place: &ItemKey) -> Result<(), StoreError> {
    if index == Index::Namespace {
        return bad("the place of a record in its namespace is implied and cannot be set".into());
    }
    check_key(place)
}

fn check_value(value: &Value) -> Result<(), StoreError> {
    match value {
        Value::Set(members) if members.is_empty() => {
            bad("a set has no members; leave the field out instead".into())
        }
        Value::Map(fields) => fields.values().try_for_each(check_value),
        _ => Ok(()),
    }
}
