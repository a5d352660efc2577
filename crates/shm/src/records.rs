//! Records, stored in the ordered map.

use tollgate_core::Tick;
use tollgate_store::StoreError;
use tollgate_store::records::{Cursor, Index, Item, ItemKey, PAGE_MAX, Page, Query, Write};

use crate::codec::{expires, index_number, item_bytes, item_from};
use crate::error::TxnAbort;
use crate::key::{KeyKind, KeyParts, MapKey};
use crate::ordered::MapNode;
use crate::tx::Tx;

/// How many records that have expired are dropped with each transaction that writes some. More than one, so that they
/// cannot accumulate.
const EXPIRED_AT_ONCE: usize = 4;

fn record_key(key: &ItemKey) -> MapKey {
    MapKey::new(KeyKind::Record).part(&key.partition).raw(key.sort.as_bytes())
}

fn place_key(index: Index, place: &ItemKey, key: &ItemKey) -> MapKey {
    let beginning =
        MapKey::new(KeyKind::Place).raw(&[index_number(index)]).part(&place.partition).part(&place.sort);
    beginning.part(&key.partition).raw(key.sort.as_bytes())
}

fn expiry_key(expires: Tick, key: &ItemKey) -> MapKey {
    let at = MapKey::new(KeyKind::Expiry).raw(&expires.as_micros().to_be_bytes());
    at.part(&key.partition).raw(key.sort.as_bytes())
}

/// Returns the partition and the sort key that a key ends with.
fn item_key(mut parts: KeyParts<'_>) -> Result<ItemKey, TxnAbort> {
    let partition = parts.part();
    let sort = String::from_utf8(parts.rest().to_vec()).ok();
    let (partition, sort) = partition.zip(sort).ok_or(TxnAbort::Damaged("the key of a record is no text"))?;
    Ok(ItemKey { partition, sort })
}

impl Tx<'_> {
    /// Returns the record at a key, if it exists and has not expired.
    pub(crate) fn record(&self, key: &ItemKey, now: Tick) -> Result<Option<Item>, TxnAbort> {
        Ok(self.stored(key)?.filter(|item| !item.has_expired(now)))
    }

    /// Returns the record at a key, expired or not.
    fn stored(&self, key: &ItemKey) -> Result<Option<Item>, TxnAbort> {
        match self.find(&record_key(key))? {
            Some((node, _)) => self.item(key.clone(), self.block_of(node)?).map(Some),
            None => Ok(None),
        }
    }

    fn item(&self, key: ItemKey, block: u64) -> Result<Item, TxnAbort> {
        let named = format!("the record {:?} {:?}", key.partition, key.sort);
        let unreadable = || TxnAbort::Unreadable(format!("{named} cannot be read: it is damaged"));
        item_from(key, &self.bytes(block)?).ok_or_else(unreadable)
    }

    /// Makes writes whose tests have passed.
    pub(crate) fn write_records(&mut self, writes: &[Write], now: Tick) -> Result<(), TxnAbort> {
        for write in writes.iter().filter(|write| !matches!(write, Write::Check(..))) {
            let there = self.stored(write.key())?;
            let next = write.applied(there.clone().filter(|item| !item.has_expired(now)));
            self.replace(write.key(), there.as_ref(), next.as_ref())?;
        }
        if !writes.is_empty() {
            self.drop_expired(now)?;
        }
        Ok(())
    }

    fn replace(&mut self, key: &ItemKey, old: Option<&Item>, new: Option<&Item>) -> Result<(), TxnAbort> {
        self.replace_places(key, old, new)?;
        let record = record_key(key);
        let there = self.find(&record)?;
        match (there, new) {
            (None, None) => {}
            (Some((_, block)), None) => {
                self.remove(&record)?;
                self.free(block);
            }
            (there, Some(item)) => {
                let too_large = || StoreError::BadCall(format!("{key:?} is too large, or too deep"));
                let bytes = item_bytes(item).ok_or_else(too_large)?;
                let block = self.alloc_bytes(&bytes)?;
                match there {
                    Some((node, old)) => {
                        self.set_value(node, block)?;
                        self.free(old);
                    }
                    None => drop(self.insert(&record, block)?),
                }
            }
        }
        Ok(())
    }

    /// Replaces the index entries and the expiry of a record.
    fn replace_places(
        &mut self,
        key: &ItemKey,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> Result<(), TxnAbort> {
        let places = |item: Option<&Item>| item.map_or(Vec::new(), |item| item.indexed.clone());
        let (was, is) = (places(old), places(new));
        for (index, place) in was.iter().filter(|place| !is.contains(place)) {
            self.remove(&place_key(*index, place, key))?;
        }
        for (index, place) in is.iter().filter(|place| !was.contains(place)) {
            self.insert(&place_key(*index, place, key), 0)?;
        }
        let expires = |item: Option<&Item>| item.and_then(|item| item.expires);
        let (was, is) = (expires(old), expires(new));
        if was != is {
            if let Some(was) = was {
                self.remove(&expiry_key(was, key))?;
            }
            if let Some(is) = is {
                self.insert(&expiry_key(is, key), 0)?;
            }
        }
        Ok(())
    }

    fn drop_expired(&mut self, now: Tick) -> Result<(), TxnAbort> {
        for _ in 0..EXPIRED_AT_ONCE {
            let Some((_, first)) = self.first(&MapKey::new(KeyKind::Expiry))? else { return Ok(()) };
            let mut parts = KeyParts::of(&first).ok_or(TxnAbort::Damaged("an expiry has no key"))?;
            let at = parts.number().ok_or(TxnAbort::Damaged("an expiry has no time"))?;
            if Tick::from_micros(u64::from_be_bytes(at)) > now {
                return Ok(());
            }
            let key = item_key(parts)?;
            match self.stored(&key) {
                Ok(Some(item)) => self.replace(&key, Some(&item), None)?,
                // A record that cannot be read is skipped: a caller that asks for it gets the error.
                _ => drop(self.remove(&MapKey::from_bytes(&first))?),
            }
        }
        Ok(())
    }

    /// Returns the records of a partition, in the order of their sort keys.
    pub(crate) fn query(&self, query: &Query, now: Tick) -> Result<Page<Item>, TxnAbort> {
        let after = query.after.as_ref().map(Cursor::parts::<1>).transpose()?;
        let partition = MapKey::new(KeyKind::Record).part(&query.partition);
        let beginning = partition.clone().raw(query.prefix.as_bytes());
        let after = after.map(|[sort]| partition.clone().raw(sort.as_bytes()));
        let (limit, mut items) = (limit(query), Vec::new());
        self.scan(&beginning, after.as_ref(), query.newest_first, |node, key| {
            let sort = KeyParts::behind(&key, &partition).and_then(|parts| str::from_utf8(parts.rest()).ok());
            let sort = sort.ok_or(TxnAbort::Damaged("the key of a record is no text"))?;
            let item = self.item(ItemKey::new(&query.partition, sort), self.block_of(node)?)?;
            if !item.has_expired(now) {
                items.push(item);
            }
            Ok(items.len() <= limit)
        })?;
        Ok(page(items, limit, |item| Cursor::of(&[&item.key.sort])))
    }

    /// Returns the keys of the records that an index has in a partition of its own.
    pub(crate) fn find_records(
        &self,
        index: Index,
        query: &Query,
        now: Tick,
    ) -> Result<Page<ItemKey>, TxnAbort> {
        if index == Index::Namespace {
            return self.find_in_namespace(query, now);
        }
        let after = query.after.as_ref().map(Cursor::parts::<3>).transpose()?;
        let partition = MapKey::new(KeyKind::Place).raw(&[index_number(index)]).part(&query.partition);
        let beginning = partition.clone().start_of_part(&query.prefix);
        let after = after
            .map(|[place, record, sort]| partition.clone().part(place).part(record).raw(sort.as_bytes()));
        let (limit, mut found) = (limit(query), Vec::new());
        self.scan(&beginning, after.as_ref(), query.newest_first, |_, key| {
            let parts = KeyParts::behind(&key, &partition);
            let place = parts.and_then(|mut parts| Some((parts.part()?, parts)));
            let (place, parts) = place.ok_or(TxnAbort::Damaged("a place in an index is none"))?;
            let key = item_key(parts)?;
            if self.is_there(&key, now)? {
                found.push((key, place));
            }
            Ok(found.len() <= limit)
        })?;
        let page = page(found, limit, |(key, place)| Cursor::of(&[place, &key.partition, &key.sort]));
        Ok(Page { items: page.items.into_iter().map(|(key, _)| key).collect(), next: page.next })
    }

    /// Returns all records whose partition starts with the namespace and a slash, by partition and sort key.
    fn find_in_namespace(&self, query: &Query, now: Tick) -> Result<Page<ItemKey>, TxnAbort> {
        let namespace = format!("{}/", query.partition);
        let prefix = if namespace.starts_with(&query.prefix) { &namespace } else { &query.prefix };
        if !prefix.starts_with(&namespace) {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let after = query.after.as_ref().map(Cursor::parts::<2>).transpose()?;
        let after =
            after.map(|[partition, sort]| MapKey::new(KeyKind::Record).part(partition).raw(sort.as_bytes()));
        let beginning = MapKey::new(KeyKind::Record).start_of_part(prefix);
        let (limit, mut found) = (limit(query), Vec::new());
        self.scan(&beginning, after.as_ref(), query.newest_first, |node, key| {
            let parts = KeyParts::of(&key).ok_or(TxnAbort::Damaged("a record has no key"))?;
            if !self.has_expired(node, now)? {
                found.push(item_key(parts)?);
            }
            Ok(found.len() <= limit)
        })?;
        Ok(page(found, limit, |key| Cursor::of(&[&key.partition, &key.sort])))
    }

    fn is_there(&self, key: &ItemKey, now: Tick) -> Result<bool, TxnAbort> {
        match self.find(&record_key(key))? {
            Some((node, _)) => Ok(!self.has_expired(node, now)?),
            None => Ok(false),
        }
    }

    fn has_expired(&self, node: MapNode, now: Tick) -> Result<bool, TxnAbort> {
        let expiry = self.get(self.block_of(node)? + 1)?.to_be_bytes();
        let expires = expires(&expiry).ok_or(TxnAbort::Damaged("a record does not say when it expires"))?;
        Ok(expires.is_some_and(|expires| expires <= now))
    }
}

fn limit(query: &Query) -> usize {
    query.limit.clamp(1, PAGE_MAX)
}

/// Returns a page of the first `limit` items, with a cursor if there are more.
pub(crate) fn page<T>(mut found: Vec<T>, limit: usize, cursor: impl Fn(&T) -> Cursor) -> Page<T> {
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(cursor);
    Page { items: found, next }
}
