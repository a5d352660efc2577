//! Records as rows of the file.

use rusqlite::{Connection, OptionalExtension, params};
use tollgate_core::Tick;
use tollgate_store::records::{Cursor, Index, Item, ItemKey, PAGE_MAX, Page, Query, Write};

use crate::codec::column;
use crate::error::{Abort, TxnError, unreadable};
use crate::select::{Bounds, Select};
use tollgate_store::records::{index_number, item_from, item_text};

/// How many records that have expired are dropped with each transaction that writes some. More than one, so that they
/// cannot accumulate.
const EXPIRED_AT_ONCE: usize = 4;

/// Returns the record at a key, if it exists and has not expired.
pub(crate) fn get(connection: &Connection, key: &ItemKey, now: Tick) -> Result<Option<Item>, Abort> {
    Ok(stored(connection, key)?.filter(|item| !item.has_expired(now)))
}

/// Returns the record at a key, expired or not.
fn stored(connection: &Connection, key: &ItemKey) -> Result<Option<Item>, Abort> {
    let mut get =
        connection.prepare_cached("SELECT body FROM record WHERE partition_key = ?1 AND sort_key = ?2")?;
    let body: Option<String> = get.query_row([&key.partition, &key.sort], |row| row.get(0)).optional()?;
    body.map(|body| decode(key.clone(), &body)).transpose()
}

fn decode(key: ItemKey, body: &str) -> Result<Item, Abort> {
    let named = format!("the record {:?} {:?}", key.partition, key.sort);
    item_from(key, body).ok_or_else(|| unreadable(&named, "it is damaged, or of a later version"))
}

/// Makes writes that were tested in the same transaction.
pub(crate) fn make(connection: &Connection, writes: &[Write], now: Tick) -> Result<(), Abort> {
    for write in writes.iter().filter(|write| !matches!(write, Write::Check(..))) {
        let there = stored(connection, write.key())?;
        let old = there.as_ref().map_or(&[][..], |item| &item.indexed).to_vec();
        let next = write.applied(there.filter(|item| !item.has_expired(now)));
        replace(connection, write.key(), &old, next.as_ref())?;
    }
    if !writes.is_empty() {
        drop_expired(connection, now)?;
    }
    Ok(())
}

fn replace(
    connection: &Connection,
    key: &ItemKey,
    old: &[(Index, ItemKey)],
    next: Option<&Item>,
) -> Result<(), TxnError> {
    let new = next.map_or(&[][..], |item| &item.indexed);
    for (index, place) in old.iter().filter(|place| !new.contains(place)) {
        let mut displace = connection.prepare_cached(
            "DELETE FROM record_index WHERE kind = ?1 AND place_partition = ?2 AND place_sort = ?3
             AND partition_key = ?4 AND sort_key = ?5",
        )?;
        let number = index_number(*index);
        displace.execute(params![number, place.partition, place.sort, key.partition, key.sort])?;
    }
    for (index, place) in new.iter().filter(|place| !old.contains(place)) {
        let mut put = connection.prepare_cached(
            "INSERT OR REPLACE INTO record_index (kind, place_partition, place_sort, partition_key, sort_key)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let number = index_number(*index);
        put.execute(params![number, place.partition, place.sort, key.partition, key.sort])?;
    }
    let Some(item) = next else {
        let mut delete =
            connection.prepare_cached("DELETE FROM record WHERE partition_key = ?1 AND sort_key = ?2")?;
        return delete.execute([&key.partition, &key.sort]).map(drop);
    };
    let mut put = connection.prepare_cached(
        "INSERT INTO record (partition_key, sort_key, body, expires) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (partition_key, sort_key) DO UPDATE SET body = excluded.body, expires = excluded.expires",
    )?;
    put.execute(params![key.partition, key.sort, item_text(item), item.expires.map(column)]).map(drop)
}

fn drop_expired(connection: &Connection, now: Tick) -> Result<(), Abort> {
    let select = Select::new("SELECT partition_key, sort_key FROM record")
        .and("expires <= ?", Some(column(now)))
        .ending("ORDER BY expires");
    let found = select.first(connection, EXPIRED_AT_ONCE, key_of)?;
    for key in found {
        // A record that cannot be read is skipped: a caller that asks for it gets the error.
        if let Ok(Some(item)) = stored(connection, &key) {
            replace(connection, &key, &item.indexed, None)?;
        }
    }
    Ok(())
}

fn key_of(row: &rusqlite::Row<'_>) -> Result<ItemKey, Abort> {
    Ok(ItemKey { partition: row.get(0)?, sort: row.get(1)? })
}

/// Returns the records of a partition, in the order of their sort keys.
pub(crate) fn query(connection: &Connection, query: &Query, now: Tick) -> Result<Page<Item>, Abort> {
    let after = query.after.as_ref().map(Cursor::parts::<1>).transpose()?.map(|[sort]| sort.to_owned());
    let (direction, further) = direction(query);
    let select = Select::new("SELECT sort_key, body FROM record")
        .and("partition_key = ?", Some(query.partition.clone()))
        .within("sort_key", bounds(query, &query.prefix, after.as_deref()))
        .and(&format!("sort_key {further} ?"), after)
        .and("(expires IS NULL OR expires > ?)", Some(column(now)))
        .ending(&format!("ORDER BY sort_key {direction}"));
    let limit = limit(query);
    let items = select.first(connection, limit + 1, |row| {
        let key = ItemKey::new(&query.partition, row.get::<_, String>(0)?);
        decode(key, row.get_ref(1)?.as_str().map_err(TxnError::from)?)
    })?;
    Ok(page(items, limit, |item| Cursor::of(&[&item.key.sort])))
}

/// Returns the keys of the records that an index has in a partition of its own.
pub(crate) fn find(
    connection: &Connection,
    index: Index,
    query: &Query,
    now: Tick,
) -> Result<Page<ItemKey>, Abort> {
    if index == Index::Namespace {
        return find_in_namespace(connection, query, now);
    }
    let after = query.after.as_ref().map(Cursor::parts::<3>).transpose()?;
    let (direction, further) = direction(query);
    let select = Select::new(
        "SELECT i.partition_key, i.sort_key, i.place_sort FROM record_index i
         CROSS JOIN record r ON r.partition_key = i.partition_key AND r.sort_key = i.sort_key",
    );
    let select = select
        .and("i.kind = ?", Some(index_number(index)))
        .and("i.place_partition = ?", Some(query.partition.clone()))
        .within("i.place_sort", bounds(query, &query.prefix, after.map(|[place, ..]| place)))
        .and_all(
            &format!("(i.place_sort, i.partition_key, i.sort_key) {further} (?, ?, ?)"),
            after.map(|after| after.map(str::to_owned)),
        )
        .and("(r.expires IS NULL OR r.expires > ?)", Some(column(now)))
        .ending(&format!(
            "ORDER BY i.place_sort {direction}, i.partition_key {direction}, i.sort_key {direction}"
        ));
    let limit = limit(query);
    let found = select.first(connection, limit + 1, |row| Ok((key_of(row)?, row.get::<_, String>(2)?)))?;
    let page = page(found, limit, |(key, place)| Cursor::of(&[place, &key.partition, &key.sort]));
    Ok(Page { items: page.items.into_iter().map(|(key, _)| key).collect(), next: page.next })
}

/// Returns all records whose partition starts with the namespace and a slash, by partition and sort key.
fn find_in_namespace(connection: &Connection, query: &Query, now: Tick) -> Result<Page<ItemKey>, Abort> {
    let namespace = format!("{}/", query.partition);
    let prefix = if namespace.starts_with(&query.prefix) { &namespace } else { &query.prefix };
    if !prefix.starts_with(&namespace) {
        return Ok(Page { items: Vec::new(), next: None });
    }
    let after = query.after.as_ref().map(Cursor::parts::<2>).transpose()?;
    let (direction, further) = direction(query);
    let select = Select::new("SELECT partition_key, sort_key FROM record")
        .within("partition_key", bounds(query, prefix, after.map(|[partition, _]| partition)))
        .and_all(
            &format!("(partition_key, sort_key) {further} (?, ?)"),
            after.map(|after| after.map(str::to_owned)),
        )
        .and("(expires IS NULL OR expires > ?)", Some(column(now)))
        .ending(&format!("ORDER BY partition_key {direction}, sort_key {direction}"));
    let limit = limit(query);
    let found = select.first(connection, limit + 1, key_of)?;
    Ok(page(found, limit, |key| Cursor::of(&[&key.partition, &key.sort])))
}

/// Returns the bounds of the keys that start with `prefix` and come behind `after`. There is one of each kind, because
/// SQLite seeks by the first of several and scans from there.
fn bounds(query: &Query, prefix: &str, after: Option<&str>) -> Bounds {
    let end = after_prefix(prefix);
    let after = after.map(str::to_owned);
    match after {
        Some(after) if query.newest_first && end.as_ref().is_none_or(|end| after < *end) => {
            Bounds { first: prefix.into(), last: Some(after), end: None }
        }
        Some(after) if !query.newest_first && *after > *prefix => Bounds { first: after, last: None, end },
        _ => Bounds { first: prefix.into(), last: None, end },
    }
}

/// Returns the sort order of a query, and the comparison with later keys.
fn direction(query: &Query) -> (&'static str, &'static str) {
    if query.newest_first { ("DESC", "<") } else { ("ASC", ">") }
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

/// Returns the least text that is greater than every text with this prefix, if there is one.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut rest = prefix.chars();
    while let Some(last) = rest.next_back() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            return Some(format!("{}{next}", rest.as_str()));
        }
    }
    None
}
