//! Changes of a record as one update.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_core::Tick;
use tollgate_store::StoreError;
use tollgate_store::records::{Change, Index, Item, ItemKey, Value, Write};

use super::expression::Words;
use crate::attributes::{EXPIRES, attribute_of, expiry_attributes, namespace_attributes};
use crate::table::{TTL, index_names};

/// The net change of a field.
#[derive(Clone, Debug, PartialEq)]
enum Net {
    Set(Value),
    Remove,
    Add(i64),
    Include(BTreeSet<String>),
    Exclude(BTreeSet<String>),
}

/// Returns the update of a record by changes, which sets its key and namespace in any case.
///
/// # Errors
///
/// [`StoreError::BadCall`] for changes to one field that cannot be made at once.
pub(super) fn update(words: &mut Words, key: &ItemKey, changes: &[Change]) -> Result<String, StoreError> {
    let mut clauses = Clauses::default();
    for (name, value) in namespace_attributes(key) {
        clauses.set(words, &name, value);
    }
    for (field, net) in nets(changes)? {
        let name = words.field(field);
        match net {
            Net::Set(value) => clauses.set.push(format!("{name} = {}", words.value(attribute_of(&value)))),
            Net::Remove => clauses.remove.push(name),
            Net::Add(amount) => {
                clauses.add.push(format!("{name} {}", words.value(AttributeValue::N(amount.to_string()))));
            }
            Net::Include(members) => clauses.add.push(format!("{name} {}", words.value(set(members)))),
            Net::Exclude(members) => clauses.delete.push(format!("{name} {}", words.value(set(members)))),
        }
    }
    for (index, place) in places(changes) {
        clauses.place(words, index, place);
    }
    if let Some(expires) = expiry(changes) {
        clauses.expire(words, expires);
    }
    Ok(clauses.update())
}

fn set(members: BTreeSet<String>) -> AttributeValue {
    AttributeValue::Ss(members.into_iter().collect())
}

/// Returns the net change of each field: the service accepts one change of a field.
fn nets(changes: &[Change]) -> Result<BTreeMap<&str, Net>, StoreError> {
    let mut nets: BTreeMap<&str, Net> = BTreeMap::new();
    for change in changes {
        let (field, net) = match change {
            Change::Set(field, value) => (field, Net::Set(value.clone())),
            Change::Remove(field) => (field, Net::Remove),
            Change::Add(field, amount) => (field, Net::Add(*amount)),
            Change::Include(field, member) => (field, Net::Include([member.clone()].into())),
            Change::Exclude(field, member) => (field, Net::Exclude([member.clone()].into())),
            _ => continue,
        };
        let net = match nets.remove(field.as_str()) {
            None => net,
            Some(first) => then(first, net, field, change)?,
        };
        nets.insert(field, net);
    }
    Ok(nets)
}

/// Returns the net of one change after another.
fn then(first: Net, next: Net, field: &str, change: &Change) -> Result<Net, StoreError> {
    Ok(match (first, next) {
        (_, Net::Set(value)) => Net::Set(value),
        (_, Net::Remove) => Net::Remove,
        // The value is known, so the next one is, too.
        (Net::Set(value), _) => known(Some(value), field, change),
        (Net::Remove, _) => known(None, field, change),
        (Net::Add(one), Net::Add(two)) => Net::Add(one.saturating_add(two)),
        (Net::Include(one), Net::Include(two)) => Net::Include(&one | &two),
        (Net::Exclude(one), Net::Exclude(two)) => Net::Exclude(&one | &two),
        _ => {
            let why = format!("field {field:?} is changed in two ways at once; make two writes of it");
            return Err(StoreError::BadCall(why));
        }
    })
}

fn known(value: Option<Value>, field: &str, change: &Change) -> Net {
    let key = ItemKey::new("", "");
    let mut item = Item::new(key.clone());
    item.fields.extend(value.map(|value| (field.to_owned(), value)));
    let applied = Write::Change(key, vec![change.clone()], Vec::new()).applied(Some(item));
    applied.and_then(|mut item| item.fields.remove(field)).map_or(Net::Remove, Net::Set)
}

/// Returns the last change of each index key.
fn places(changes: &[Change]) -> BTreeMap<Index, Option<&ItemKey>> {
    fn said(change: &Change) -> Option<(Index, Option<&ItemKey>)> {
        match change {
            Change::Place(index, place) => Some((*index, Some(place))),
            Change::Displace(index) => Some((*index, None)),
            _ => None,
        }
    }
    changes.iter().filter_map(said).collect()
}

/// Returns the last change of the expiry, if there is one.
fn expiry(changes: &[Change]) -> Option<Option<Tick>> {
    changes.iter().rev().find_map(|change| match change {
        Change::Expire(expires) => Some(*expires),
        _ => None,
    })
}

#[derive(Default)]
struct Clauses {
    set: Vec<String>,
    remove: Vec<String>,
    add: Vec<String>,
    delete: Vec<String>,
}

impl Clauses {
    fn set(&mut self, words: &mut Words, attribute: &str, value: AttributeValue) {
        let clause = format!("{} = {}", words.name(attribute), words.value(value));
        self.set.push(clause);
    }

    fn remove(&mut self, words: &mut Words, attribute: &str) {
        self.remove.push(words.name(attribute));
    }

    fn place(&mut self, words: &mut Words, index: Index, place: Option<&ItemKey>) {
        let names = index_names(index);
        match place {
            Some(place) => {
                self.set(words, names.partition, AttributeValue::S(place.partition.clone()));
                self.set(words, names.sort, AttributeValue::S(place.sort.clone()));
            }
            None => [names.partition, names.sort].into_iter().for_each(|name| self.remove(words, name)),
        }
    }

    fn expire(&mut self, words: &mut Words, expires: Option<Tick>) {
        match expires {
            Some(expires) => {
                expiry_attributes(expires)
                    .into_iter()
                    .for_each(|(name, value)| self.set(words, &name, value));
            }
            None => [TTL, EXPIRES].into_iter().for_each(|name| self.remove(words, name)),
        }
    }

    fn update(self) -> String {
        let all = [("SET", self.set), ("REMOVE", self.remove), ("ADD", self.add), ("DELETE", self.delete)];
        let said = all.into_iter().filter(|(_, clauses)| !clauses.is_empty());
        said.map(|(verb, clauses)| format!("{verb} {}", clauses.join(", "))).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(changes: &[Change]) -> Result<Net, StoreError> {
        nets(changes).map(|nets| nets["n"].clone())
    }

    #[test]
    fn several_changes_to_one_field_are_made_one() {
        let set = |number: i64| Change::Set("n".into(), number.into());
        let add = |amount| Change::Add("n".into(), amount);
        let include = |member: &str| Change::Include("n".into(), member.into());
        assert_eq!(net(&[add(1), add(2)]), Ok(Net::Add(3)));
        assert_eq!(net(&[add(1), set(5), add(2)]), Ok(Net::Set(7.into())));
        assert_eq!(net(&[set(5), Change::Remove("n".into())]), Ok(Net::Remove));
        assert_eq!(net(&[Change::Remove("n".into()), add(2)]), Ok(Net::Set(2.into())));
        assert_eq!(net(&[include("a"), include("b")]), Ok(Net::Include(["a".into(), "b".into()].into())));
        let exclude = Change::Exclude("n".into(), "a".into());
        assert!(matches!(net(&[include("a"), exclude]), Err(StoreError::BadCall(_))));
    }
}
