//! Changes that add to a set and remove from it at once, which one update of DynamoDB cannot do: the set is read, and
//! replaced on condition that it is still the same.

use std::collections::BTreeSet;

use tollgate_core::Tick;
use tollgate_store::records::{Change, Item, RecordsError, Test, Value, Write};

use super::get::get_many;
use crate::service::TableService;

/// Returns the fields that a write both adds to and removes from.
pub(super) fn fields(write: &Write) -> BTreeSet<&str> {
    let Write::Change(_, changes, _) = write else { return BTreeSet::new() };
    let included = changes.iter().filter_map(|change| match change {
        Change::Include(field, _) => Some(field.as_str()),
        _ => None,
    });
    let excludes =
        |field: &&str| changes.iter().any(|it| matches!(it, Change::Exclude(other, _) if other == field));
    included.filter(excludes).collect()
}

/// Returns the writes with such changes replaced by new sets. A write whose test fails now fails here.
pub(super) async fn worked_out(
    service: &TableService,
    writes: &[Write],
    now: Tick,
) -> Result<Vec<Write>, RecordsError> {
    let mixed: Vec<usize> = (0..writes.len()).filter(|index| !fields(&writes[*index]).is_empty()).collect();
    let keys: Vec<_> = mixed.iter().map(|index| writes[*index].key().clone()).collect();
    let found = get_many(service, &keys).await.map_err(RecordsError::Store)?;
    let mut writes = writes.to_vec();
    for (index, item) in mixed.into_iter().zip(found) {
        let there = item.filter(|item| !item.has_expired(now));
        if !writes[index].passes(there.as_ref()) {
            return Err(RecordsError::Failed(index));
        }
        writes[index] = work_out(&writes[index], there);
    }
    Ok(writes)
}

fn work_out(write: &Write, there: Option<Item>) -> Write {
    let mixed = fields(write);
    let Write::Change(key, changes, tests) = write else { return write.clone() };
    let before = there.as_ref().map(|item| item.fields.clone()).unwrap_or_default();
    let after = write.applied(there).map(|item| item.fields).unwrap_or_default();
    let is_mixed = |change: &Change| match change {
        Change::Include(field, _) | Change::Exclude(field, _) => mixed.contains(field.as_str()),
        _ => false,
    };
    let mut changes: Vec<Change> = changes.iter().filter(|change| !is_mixed(change)).cloned().collect();
    let mut tests = tests.clone();
    for field in mixed {
        match (before.get(field), after.get(field)) {
            // Without a set nothing can be tested, but adding to it gives the same result if other writers add too.
            (None, Some(Value::Set(members))) => {
                changes.extend(members.iter().map(|member| Change::Include(field.into(), member.clone())));
            }
            (before, after) => {
                tests.extend(before.map(|value| Test::Is(field.into(), value.clone())));
                changes.push(match after {
                    Some(value) => Change::Set(field.into(), value.clone()),
                    None => Change::Remove(field.into()),
                });
            }
        }
    }
    Write::Change(key.clone(), changes, tests)
}
