//! `Records` for the store.

use std::time::Duration;

use tollgate_store::records::{
    Cursor, Index, Item, ItemKey, PAGE_MAX, Page, Query, Records, RecordsError, Write, check_keys, item_from,
};
use tollgate_store::workers::{CallTimer, unique_id};
use tollgate_store::{OwnedTransaction, QueuePlace, Reply, StoreError};

use crate::ServerError;
use crate::apply::{ScriptReply, remembered_by};
use crate::inner::{RedisInner, RedisStore};
use crate::layout::{escaped, place_from, record_from};
use crate::service::{SeenValues, TimedError};

/// Decodes a record.
pub(crate) fn item_of(key: &ItemKey, bytes: &[u8]) -> Result<Item, StoreError> {
    let item = str::from_utf8(bytes).ok().and_then(|text| item_from(key.clone(), text));
    let unreadable = || ServerError::Unreadable(format!("the record {key:?}")).into_error(Duration::ZERO);
    item.ok_or_else(unreadable)
}

/// A range of an ordered set.
pub(crate) struct SetRange {
    /// The set.
    pub(crate) list: Vec<u8>,
    /// Only members that start with this.
    pub(crate) prefix: Vec<u8>,
    /// Only members after this one, in the order of the list.
    pub(crate) after: Option<Vec<u8>>,
    pub(crate) limit: usize,
    pub(crate) newest_first: bool,
    /// The prefix of the keys of the values.
    pub(crate) values: Vec<u8>,
    /// Whether the rest of the key is what follows the sort key of an index.
    pub(crate) is_index: bool,
}

impl RedisInner {
    /// Returns the members of a range and their values, with the time.
    pub(crate) async fn list(
        &self,
        range: &SetRange,
    ) -> Result<(SeenValues, Vec<(Vec<u8>, Vec<u8>)>), StoreError> {
        let inclusive = |bytes: &[u8]| [b"[", bytes].concat();
        let exclusive = |bytes: &[u8]| [b"(", bytes].concat();
        let mut from = if range.prefix.is_empty() { b"-".to_vec() } else { inclusive(&range.prefix) };
        let mut to = match after_bytes(&range.prefix) {
            Some(end) => exclusive(&end),
            None => b"+".to_vec(),
        };
        match &range.after {
            Some(after) if range.newest_first => to = exclusive(after),
            Some(after) => from = exclusive(after),
            None => {}
        }
        let arguments = [
            self.service.now().into_bytes(),
            from,
            to,
            range.limit.to_string().into_bytes(),
            if range.newest_first { b"1".to_vec() } else { b"0".to_vec() },
            range.values.clone(),
            if range.is_index { b"behind".to_vec() } else { b"all".to_vec() },
        ];
        let (script, keys) = (&self.service.scripts.list, [&range.list]);
        let mut seen =
            SeenValues::of(self.service.run(CallTimer::start(), script, &keys, &arguments).await?)?;
        let mut values = std::mem::take(&mut seen.values).into_iter();
        let mut pairs = Vec::new();
        while let (Some(member), Some(value)) = (values.next(), values.next()) {
            pairs.push((member, value));
        }
        Ok((seen, pairs))
    }

    async fn get_many(&self, keys: &[ItemKey]) -> Result<Vec<Option<Item>>, RecordsError> {
        let names: Vec<Vec<u8>> = keys.iter().map(|key| self.service.layout.record(key)).collect();
        let ScriptReply::Seen((_, seen)) = self.read_values(CallTimer::start(), unique_id(), &names).await?
        else {
            return Err(ServerError::Garbage("nothing was seen".into()).into_error(Duration::ZERO).into());
        };
        let item = |(key, bytes): (&ItemKey, &Vec<u8>)| match bytes.is_empty() {
            true => Ok(None),
            false => Ok(Some(item_of(key, bytes)?).filter(|item| !item.has_expired(seen.now))),
        };
        keys.iter().zip(&seen.values).map(item).collect()
    }

    async fn query(&self, query: &Query) -> Result<Page<Item>, RecordsError> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let after = query.after.as_ref().map(Cursor::parts::<1>).transpose()?;
        let range = SetRange {
            list: self.service.layout.partition(&query.partition),
            prefix: query.prefix.clone().into_bytes(),
            after: after.map(|[sort]| sort.as_bytes().to_vec()),
            limit: limit + 1,
            newest_first: query.newest_first,
            values: self.service.layout.records_of(&query.partition),
            is_index: false,
        };
        let (seen, mut pairs) = self.list(&range).await?;
        let is_last = pairs.len() <= limit;
        pairs.truncate(limit);
        let mut page = Page { items: Vec::new(), next: None };
        for (member, bytes) in &pairs {
            let sort = str::from_utf8(member).map_err(|_| not_text())?;
            let key = ItemKey::new(&query.partition, sort);
            if !bytes.is_empty() {
                page.items.extend(Some(item_of(&key, bytes)?).filter(|item| !item.has_expired(seen.now)));
            }
            page.next = (!is_last).then(|| Cursor::of(&[sort]));
        }
        Ok(page)
    }

    async fn find(&self, index: Index, query: &Query) -> Result<Page<ItemKey>, RecordsError> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let after = query.after.as_ref().map(Cursor::parts::<3>).transpose()?;
        let place = |[sort, partition, key]: [&str; 3]| {
            crate::layout::place_bytes(sort, &ItemKey::new(partition, key))
        };
        let range = SetRange {
            list: self.service.layout.index(index, &query.partition),
            prefix: escaped(&query.prefix),
            after: after.map(place),
            limit: limit + 1,
            newest_first: query.newest_first,
            values: self.service.layout.records(),
            is_index: true,
        };
        let (seen, mut pairs) = self.list(&range).await?;
        let is_last = pairs.len() <= limit;
        pairs.truncate(limit);
        let mut page = Page { items: Vec::new(), next: None };
        for (member, bytes) in &pairs {
            let (sort, key) = place_from(member).ok_or_else(not_text)?;
            page.next = (!is_last).then(|| Cursor::of(&[&sort, &key.partition, &key.sort]));
            if !bytes.is_empty() && !item_of(&key, bytes)?.has_expired(seen.now) {
                page.items.push(key);
            }
        }
        Ok(page)
    }

    /// Forgets records that have expired, a few at a time.
    pub(crate) async fn sweep_records(&self, most: usize) -> Result<(), StoreError> {
        let now = self.service.time.clock().now().as_micros() / 1_000;
        let mut due = redis::cmd("ZRANGE");
        due.arg(self.service.layout.expiring()).arg("-inf").arg(now).arg("BYSCORE");
        due.arg("LIMIT").arg(0).arg(most);
        let due = self
            .service
            .with_retries(CallTimer::start(), &due, None)
            .await
            .map_err(TimedError::into_error)?;
        for bytes in crate::service::bulks(due)? {
            let Some(key) = record_from(&bytes) else { continue };
            // What has expired is not there, so it is deleted by a write that changes nothing.
            let write = [Write::Delete(key, vec![tollgate_store::records::Test::Absent])];
            let (call, remembered) = (OwnedTransaction::empty(), remembered_by(self.service.timeout));
            match self.apply_in_turn(&call, &write, remembered, &[], &QueuePlace::default()).await {
                Ok(_) | Err(RecordsError::Failed(_)) => {}
                Err(RecordsError::Store(error)) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }
}

fn not_text() -> StoreError {
    ServerError::Unreadable("the key of a record".into()).into_error(Duration::ZERO)
}

/// Returns the least bytes that are greater than all that start with these, if there are any.
fn after_bytes(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl Records for RedisStore {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        if let Err(why) = check_keys(keys) {
            return Reply::ready(Err(why.into()));
        }
        Reply::later(self.0.service.within(self.0.get_many(keys)))
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        let write = self.apply_call(OwnedTransaction::empty(), writes.to_vec(), QueuePlace::default());
        Reply::later(async move { write.await.map(drop) })
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        Reply::later(self.0.service.within(self.0.query(query)))
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        Reply::later(self.0.service.within(self.0.find(index, query)))
    }
}
