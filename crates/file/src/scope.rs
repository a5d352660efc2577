//! Lists, forgets and flushes many buckets of a namespace.

use rusqlite::Connection;
use tollgate_store::records::{Cursor, Item, ItemKey, PAGE_MAX, Page};
use tollgate_store::txn::MeteredBucket;
use tollgate_store::usage::bucket_of_usage;
use tollgate_store::{Activity, BucketStatus, FORGET_MAX, Freed, Key, LivenessCache, Scope, forgotten_write};

use crate::error::{Abort, TxnError};
use crate::records::{self, page};
use crate::rows::{self, RawRow};
use crate::select::Select;
use crate::txn::{ReadView, WriteTxn};

/// How many buckets have their usage written in one transaction.
const WRITTEN_AT_ONCE: usize = 500;

/// An owned [`Scope`].
#[derive(Clone, Debug)]
pub(crate) enum OwnedScope {
    Entity(String),
    Resource(String),
    Bucket(String, String),
    All,
}

impl OwnedScope {
    pub(crate) fn new(scope: Scope<'_>) -> OwnedScope {
        match scope {
            Scope::Entity(entity) => OwnedScope::Entity(entity.into()),
            Scope::Resource(resource) => OwnedScope::Resource(resource.into()),
            Scope::Bucket(entity, resource) => OwnedScope::Bucket(entity.into(), resource.into()),
            Scope::All => OwnedScope::All,
        }
    }

    fn as_scope(&self) -> Scope<'_> {
        match self {
            OwnedScope::Entity(entity) => Scope::Entity(entity),
            OwnedScope::Resource(resource) => Scope::Resource(resource),
            OwnedScope::Bucket(entity, resource) => Scope::Bucket(entity, resource),
            OwnedScope::All => Scope::All,
        }
    }

    /// Returns the first key, the key behind the last, and the resource.
    fn range(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>, Option<&str>) {
        match self {
            OwnedScope::Entity(entity) => {
                let first = Key::new(&[entity]).as_bytes().to_vec();
                let end = after_bytes(&first);
                (Some(first), end, None)
            }
            OwnedScope::Resource(resource) => (None, None, Some(resource)),
            OwnedScope::Bucket(entity, resource) => {
                let key = Key::new(&[entity, resource]).as_bytes().to_vec();
                let end = [&key[..], &[0]].concat();
                (Some(key), Some(end), None)
            }
            OwnedScope::All => (None, None, None),
        }
    }
}

/// Returns the least key that is greater than every key with this prefix, if there is one.
fn after_bytes(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Which rows of a scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Metered,
}

/// Returns the rows of a scope behind a key, in the order of the keys.
fn list(
    connection: &Connection,
    namespace: &str,
    scope: &OwnedScope,
    which: Which,
    after: Option<&Key>,
    limit: usize,
) -> Result<Vec<(Key, RawRow)>, Abort> {
    let (first, end, resource) = scope.range();
    let ending = match which {
        Which::All => "ORDER BY key",
        Which::Metered => "AND usage IS NOT NULL ORDER BY key",
    };
    // By default SQLite may scan all keys of the namespace, because they are in order.
    let index = if resource.is_some() { "INDEXED BY bucket_of_resource" } else { "" };
    // The lower bound includes `after`, so that SQLite seeks to one key.
    let after = after.map(|key| key.as_bytes().to_vec());
    let select = Select::new(&format!("SELECT key, limits, version, state, usage FROM bucket {index}"))
        .and("namespace = ?", Some(namespace.to_owned()))
        .and("resource = ?", resource.map(str::to_owned))
        .and("key >= ?", first.max(after.clone()))
        .and("key < ?", end)
        .and("key > ?", after)
        .ending(ending);
    select.first(connection, limit, |row| {
        let key = Key::from_bytes(row.get_ref(0)?.as_blob().map_err(TxnError::from)?);
        Ok((key, RawRow::read(row, 1)?))
    })
}

/// Returns the status of the buckets of a scope.
pub(crate) fn buckets(
    view: &mut ReadView<'_>,
    namespace: &str,
    scope: &OwnedScope,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<BucketStatus>, Abort> {
    let after = after.map(Cursor::parts::<2>).transpose()?.map(|parts| Key::new(&parts));
    let (mut now, limit) = (view.clock.now(), limit.clamp(1, PAGE_MAX));
    let (mut statuses, mut after, mut liveness) = (Vec::new(), after, LivenessCache::default());
    // Keys that are not a pair are skipped, however many there are.
    while statuses.len() <= limit {
        let found = list(view.connection, namespace, scope, Which::All, after.as_ref(), limit + 1)?;
        let is_last = found.len() <= limit;
        after = found.last().map(|(key, _)| key.clone());
        for (key, raw) in found {
            let Some((entity, resource)) = key.pair() else { continue };
            let stored = raw.decode(view.connection, view.known, None)?.stored;
            now = view.clock.now_for(view.connection, stored.bucket.stamp(), now)?;
            let stored = stored.as_seen(now, &mut liveness);
            statuses.push(BucketStatus {
                entity: entity.to_owned(),
                resource: resource.to_owned(),
                limits: stored.bucket.peek(&stored.limits, now),
            });
        }
        if is_last {
            break;
        }
    }
    Ok(page(statuses, limit, |status| Cursor::of(&[&status.entity, &status.resource])))
}

/// How many buckets are read in one transaction.
const LOOKED_AT_ONCE: usize = 2_000;

/// Returns the activity of some buckets of a scope behind a key: what is in use, and usage that is in no record yet;
/// and the last key that was read if there may be more.
pub(crate) fn activity(
    view: &mut ReadView<'_>,
    namespace: &str,
    scope: &OwnedScope,
    after: Option<&Key>,
) -> Result<(Vec<Activity>, Option<Key>), Abort> {
    let (mut now, mut liveness, mut activities) = (view.clock.now(), LivenessCache::default(), Vec::new());
    let found = list(view.connection, namespace, scope, Which::All, after, LOOKED_AT_ONCE)?;
    let last = found.last().map(|(key, _)| key.clone()).filter(|_| found.len() == LOOKED_AT_ONCE);
    for (key, raw) in found {
        let Some((entity, resource)) = key.pair() else { continue };
        let MeteredBucket { stored, usage } = raw.decode(view.connection, view.known, None)?;
        now = view.clock.now_for(view.connection, stored.bucket.stamp(), now)?;
        let stored = stored.as_seen(now, &mut liveness);
        activities.push(Activity {
            entity: entity.into(),
            resource: resource.into(),
            hour: usage.map(|sums| (sums.starts(), sums.events().into())),
            others: Vec::new(),
            in_use: Activity::in_use(&stored.bucket.peek(&stored.limits, now)),
        });
    }
    Ok((activities, last))
}

/// Returns the record of usage at a key, with the usage added that its bucket has counted since.
pub(crate) fn usage_at(view: &mut ReadView<'_>, key: &ItemKey) -> Result<Option<Item>, Abort> {
    let there = records::get(view.connection, key, view.clock.now())?;
    let Some((namespace, entity, resource)) = bucket_of_usage(key) else { return Ok(there) };
    let Some(raw) = rows::get(view.connection, namespace, &Key::new(&[entity, resource]))? else {
        return Ok(there);
    };
    match raw.decode(view.connection, view.known, None)?.usage {
        Some(sums) => Ok(sums.added_to(key, there, view.usage_retention)),
        None => Ok(there),
    }
}

/// Forgets buckets and the usage that was not yet written, at most [`FORGET_MAX`], and returns how many.
pub(crate) fn forget(batch: &mut WriteTxn<'_>, namespace: &str, scope: &OwnedScope) -> Result<usize, Abort> {
    let view = batch.view()?;
    let found = list(view.connection, namespace, scope, Which::All, None, FORGET_MAX)?;
    for (key, _) in &found {
        rows::delete(view.connection, namespace, key)?;
    }
    // After the deletions, which make room for it. In a closed namespace nothing is settled any more, and a purge
    // leaves no record.
    if !rows::is_closed(view.connection, namespace)? {
        let now = view.clock.now();
        records::make(view.connection, &[forgotten_write(namespace, scope.as_scope(), now)], now)?;
    }
    let forgotten = found.len();
    // A waiter for a forgotten bucket has to be notified.
    batch.freed.extend(found.iter().map(|(key, _)| Freed::all(namespace, key)));
    Ok(forgotten)
}

/// Writes the usage of some buckets of a scope behind a key; returns the last of them if there may be more.
pub(crate) fn write_usage(
    batch: &mut WriteTxn<'_>,
    namespace: &str,
    scope: &OwnedScope,
    after: Option<&Key>,
) -> Result<Option<Key>, Abort> {
    let view = batch.view()?;
    let now = view.clock.now();
    let found = list(view.connection, namespace, scope, Which::Metered, after, WRITTEN_AT_ONCE)?;
    let last = found.last().map(|(key, _)| key.clone()).filter(|_| found.len() == WRITTEN_AT_ONCE);
    for (key, raw) in found {
        let mut row = raw.decode(view.connection, view.known, None)?;
        if let (Some(sums), Some((entity, resource))) = (row.usage.take(), key.pair()) {
            let writes = sums.writes(namespace, entity, resource, view.usage_retention);
            records::make(view.connection, &writes, now)?;
            rows::put(view.connection, view.known, (namespace, &key), &row)?;
        }
    }
    Ok(last)
}
