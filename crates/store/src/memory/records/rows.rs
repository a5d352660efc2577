//! What the lock of the records guards: the records by key, by index entry, and by expiry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tollgate_core::Tick;

use super::range::{after_prefix, between, end, page};
use crate::StoreError;
use crate::records::{Cursor, Fields, Index, Item, ItemKey, Page, Query, Write};

/// How many records that have expired are dropped with each write. More than one, so that they cannot accumulate.
const EXPIRED_PER_WRITE: usize = 4;

/// A record without its key, which the maps share.
#[derive(Clone)]
struct RecordRow {
    fields: Fields,
    indexed: Vec<(Index, Arc<ItemKey>)>,
    expires: Option<Tick>,
}

/// An index entry, and its record.
type Placed = (Index, Arc<ItemKey>, Arc<ItemKey>);

#[derive(Clone, Default)]
pub(super) struct Rows {
    rows: BTreeMap<Arc<ItemKey>, RecordRow>,
    placed: BTreeSet<Placed>,
    expiring: BTreeSet<(Tick, Arc<ItemKey>)>,
    /// When a caller last used the records.
    pub(super) now: Tick,
}

impl Rows {
    pub(super) fn get(&self, key: &ItemKey) -> Option<Item> {
        self.rows.get_key_value(key).filter(|(_, row)| self.is_there(row)).map(item)
    }

    /// Returns the first write whose test fails.
    pub(super) fn failing(&self, writes: &[Write]) -> Option<usize> {
        // Nearly all writes test nothing, and then there is no need to read.
        writes
            .iter()
            .position(|write| !write.tests().is_empty() && !write.passes(self.get(write.key()).as_ref()))
    }

    pub(super) fn make(&mut self, writes: &[Write]) {
        for write in writes.iter().filter(|write| !matches!(write, Write::Check(..))) {
            let there = self.remove(write.key()).filter(|item| !item.has_expired(self.now));
            if let Some(item) = write.applied(there) {
                self.insert(item);
            }
        }
        self.drop_expired();
    }

    pub(super) fn query(&self, query: &Query) -> Result<Page<Item>, StoreError> {
        let Query { partition, prefix, after, .. } = query;
        let after = after.as_ref().map(Cursor::parts::<1>).transpose()?;
        let after = after.map(|[sort]| ItemKey::new(partition, sort));
        let range = between(query, ItemKey::new(partition, prefix), end(partition, prefix), after);
        let rows = range.into_iter().flat_map(|range| self.rows.range::<ItemKey, _>(range));
        let items = rows.filter(|(_, row)| self.is_there(row)).map(item);
        Ok(page(query, items, |item| Cursor::of(&[&item.key.sort])))
    }

    pub(super) fn find(&self, index: Index, query: &Query) -> Result<Page<ItemKey>, StoreError> {
        if index == Index::Namespace {
            return self.find_in_namespace(query);
        }
        let Query { partition, prefix, after, .. } = query;
        let after = after.as_ref().map(Cursor::parts::<3>).transpose()?;
        let bound = |place: ItemKey, record: ItemKey| (index, Arc::new(place), Arc::new(record));
        let after = after.map(|[place, partition_of, sort]| {
            bound(ItemKey::new(partition, place), ItemKey::new(partition_of, sort))
        });
        let first = ItemKey::new("", "");
        let from = bound(ItemKey::new(partition, prefix), first.clone());
        let range = between(query, from, bound(end(partition, prefix), first), after);
        let placed = range.into_iter().flat_map(|range| self.placed.range(range));
        let there = placed.filter(|(_, _, key)| self.rows.get(key).is_some_and(|row| self.is_there(row)));
        let page =
            page(query, there, |(_, place, key)| Cursor::of(&[&place.sort, &key.partition, &key.sort]));
        let items = page.items.into_iter().map(|(_, _, key)| ItemKey::clone(key)).collect();
        Ok(Page { items, next: page.next })
    }

    /// Returns all records whose partition starts with the namespace and a slash, by partition and sort key.
    fn find_in_namespace(&self, query: &Query) -> Result<Page<ItemKey>, StoreError> {
        let namespace = format!("{}/", query.partition);
        let prefix = if namespace.starts_with(&query.prefix) { &namespace } else { &query.prefix };
        let after = query.after.as_ref().map(Cursor::parts::<2>).transpose()?;
        let after = after.map(|[partition, sort]| ItemKey::new(partition, sort));
        let range = after_prefix(prefix)
            .filter(|_| prefix.starts_with(&namespace))
            .and_then(|to| between(query, ItemKey::new(prefix, ""), ItemKey::new(to, ""), after));
        let rows = range.into_iter().flat_map(|range| self.rows.range::<ItemKey, _>(range));
        let keys = rows.filter(|(_, row)| self.is_there(row)).map(|(key, _)| ItemKey::clone(key));
        Ok(page(query, keys, |key| Cursor::of(&[&key.partition, &key.sort])))
    }

    fn is_there(&self, row: &RecordRow) -> bool {
        row.expires.is_none_or(|expires| expires > self.now)
    }

    fn insert(&mut self, item: Item) {
        let key = Arc::new(item.key);
        let indexed = item.indexed.into_iter().map(|(index, place)| (index, Arc::new(place)));
        let row = RecordRow { fields: item.fields, indexed: indexed.collect(), expires: item.expires };
        let placed = row.indexed.iter().map(|(index, place)| (*index, Arc::clone(place), Arc::clone(&key)));
        self.placed.extend(placed);
        self.expiring.extend(row.expires.map(|expires| (expires, Arc::clone(&key))));
        self.rows.insert(key, row);
    }

    fn remove(&mut self, key: &ItemKey) -> Option<Item> {
        let (key, row) = self.rows.remove_entry(key)?;
        let removed = item((&key, &row));
        for (index, place) in row.indexed {
            self.placed.remove(&(index, place, Arc::clone(&key)));
        }
        if let Some(expires) = row.expires {
            self.expiring.remove(&(expires, key));
        }
        Some(removed)
    }

    fn drop_expired(&mut self) {
        for _ in 0..EXPIRED_PER_WRITE {
            let Some((_, key)) = self.expiring.first().filter(|(expires, _)| *expires <= self.now) else {
                return;
            };
            let key = Arc::clone(key);
            self.remove(&key);
        }
    }
}

fn item((key, row): (&Arc<ItemKey>, &RecordRow)) -> Item {
    Item {
        key: ItemKey::clone(key),
        fields: row.fields.clone(),
        indexed: row.indexed.iter().map(|(index, place)| (*index, ItemKey::clone(place))).collect(),
        expires: row.expires,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_is_dropped_from_everywhere_as_others_come_in() {
        let mut rows = Rows::default();
        let put = |number: u64, expires| {
            let item = Item::new(ItemKey::new("ns/A", number.to_string()));
            let item = item.indexed(Index::Children, "ns/P", number.to_string());
            [Write::Put(Item { expires: Some(Tick::from_secs(expires)), ..item }, vec![])]
        };
        (0..100).for_each(|number| rows.make(&put(number, 10)));
        rows.now = Tick::from_secs(10);
        (100..140).for_each(|number| rows.make(&put(number, 100)));
        assert_eq!([rows.rows.len(), rows.placed.len(), rows.expiring.len()], [40; 3]);
    }
}
