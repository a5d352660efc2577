//! The model of a store of records: a map.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::Tick;
use tollgate_store::records::{Change, Index, Item, ItemKey, Query, Test, Value, Write};

#[derive(Default)]
pub(super) struct RecordsModel {
    items: BTreeMap<ItemKey, Item>,
}

impl RecordsModel {
    pub(super) fn get(&self, key: &ItemKey, now: Tick) -> Option<&Item> {
        self.items.get(key).filter(|item| item.expires.is_none_or(|expires| expires > now))
    }

    /// Makes the writes, or returns the indexes of those whose tests fail.
    pub(super) fn write(&mut self, writes: &[Write], now: Tick) -> Vec<usize> {
        let fails = |write: &Write| !write.tests().iter().all(|test| self.holds(write.key(), test, now));
        let failing: Vec<usize> = (0..writes.len()).filter(|index| fails(&writes[*index])).collect();
        if failing.is_empty() {
            writes.iter().for_each(|write| self.make(write, now));
        }
        failing
    }

    fn holds(&self, key: &ItemKey, test: &Test, now: Tick) -> bool {
        let item = self.get(key, now);
        match test {
            Test::Exists => item.is_some(),
            Test::Absent => item.is_none(),
            Test::Is(name, value) => item.is_some_and(|item| item.fields.get(name) == Some(value)),
            Test::AtMost(name, most) => match item.and_then(|item| item.fields.get(name)) {
                Some(Value::Int(number)) => number <= most,
                _ => 0 <= *most,
            },
            unknown => panic!("the model does not know {unknown:?}"),
        }
    }

    fn make(&mut self, write: &Write, now: Tick) {
        let there = self.get(write.key(), now).cloned();
        match write {
            Write::Put(item, _) => drop(self.items.insert(item.key.clone(), item.clone())),
            Write::Delete(key, _) => drop(self.items.remove(key)),
            Write::Check(..) => {}
            Write::Change(key, changes, _) => {
                let mut item = there.unwrap_or_else(|| Item::new(key.clone()));
                changes.iter().for_each(|change| make_change(&mut item, change));
                self.items.insert(key.clone(), item);
            }
            unknown => panic!("the model does not know {unknown:?}"),
        }
    }

    /// Returns all records of a query, in one page.
    pub(super) fn query(&self, query: &Query, now: Tick) -> Vec<Item> {
        let is_wanted =
            |key: &&ItemKey| key.partition == query.partition && key.sort.starts_with(&query.prefix);
        let there = self.items.keys().filter(is_wanted).filter_map(|key| self.get(key, now).cloned());
        let mut all: Vec<Item> = there.collect();
        if query.newest_first {
            all.reverse();
        }
        all
    }

    /// Returns the sort keys of an index with their records, in order.
    pub(super) fn find(&self, index: Index, query: &Query, now: Tick) -> Vec<(String, ItemKey)> {
        let mut found = Vec::new();
        for item in self.items.keys().filter_map(|key| self.get(key, now)) {
            let place = match index {
                Index::Namespace => Some(ItemKey::new(item.key.namespace(), item.key.partition.clone())),
                _ => item.indexed.iter().find(|(other, _)| *other == index).map(|(_, place)| place.clone()),
            };
            let place = place.filter(|place| place.partition == query.partition);
            let place = place.filter(|place| place.sort.starts_with(&query.prefix));
            found.extend(place.map(|place| (place.sort, item.key.clone())));
        }
        found.sort();
        if query.newest_first {
            found.reverse();
        }
        found
    }
}

fn make_change(item: &mut Item, change: &Change) {
    let Item { fields, indexed, expires, .. } = item;
    match change {
        Change::Set(name, value) => drop(fields.insert(name.clone(), value.clone())),
        Change::Remove(name) => drop(fields.remove(name)),
        Change::Add(name, amount) => match fields.entry(name.clone()).or_insert(Value::Int(0)) {
            Value::Int(number) => *number += amount,
            other => panic!("the suite adds to numbers only, and this is {other:?}"),
        },
        Change::Include(name, member) => {
            if let Value::Set(members) =
                fields.entry(name.clone()).or_insert_with(|| Value::Set(BTreeSet::new()))
            {
                members.insert(member.clone());
            }
        }
        Change::Exclude(name, member) => {
            let Some(Value::Set(members)) = fields.get_mut(name) else { return };
            members.remove(member);
            if members.is_empty() {
                fields.remove(name);
            }
        }
        Change::Place(index, place) => {
            indexed.retain(|(other, _)| other != index);
            indexed.push((*index, place.clone()));
        }
        Change::Displace(index) => indexed.retain(|(other, _)| other != index),
        Change::Expire(tick) => *expires = *tick,
        unknown => panic!("the model does not know {unknown:?}"),
    }
}
