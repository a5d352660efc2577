//! Lists, forgets and flushes many buckets of a namespace.

use tollgate_core::Tick;
use tollgate_store::records::{Cursor, Item, ItemKey, PAGE_MAX, Page};
use tollgate_store::txn::MeteredBucket;
use tollgate_store::usage::bucket_of_usage;
use tollgate_store::{Activity, BucketStatus, FORGET_MAX, Key, LivenessCache, Scope, forgotten_write};

use crate::apply;
use crate::error::TxnAbort;
use crate::key::{KeyKind, KeyParts, MapKey};
use crate::limits::ShmLimitsCache;
use crate::records::page;
use crate::row::{self, RowParts};
use crate::tx::Tx;

/// How many buckets have their usage written in one transaction, and how many are checked for that.
const WRITTEN_AT_ONCE: usize = 50;
const SEEN_AT_ONCE: usize = 2_000;

/// Returns the prefix of the keys of a scope: what is before the key of the bucket, and as much of that as is given.
fn beginning(namespace: &str, scope: Scope<'_>) -> (MapKey, MapKey) {
    let all = MapKey::new(KeyKind::Bucket).part(namespace);
    match scope {
        Scope::All => (all.clone(), all),
        Scope::Entity(entity) => (all.clone(), all.raw(Key::new(&[entity]).as_bytes())),
        Scope::Bucket(entity, resource) => (all.clone(), all.raw(Key::new(&[entity, resource]).as_bytes())),
        Scope::Resource(resource) => {
            let all = MapKey::new(KeyKind::OfResource).part(namespace).part(resource);
            (all.clone(), all)
        }
    }
}

/// Visits the buckets of a scope behind a key, in the order of the keys, for as long as `go_on` returns true.
fn each(
    tx: &Tx<'_>,
    (namespace, scope): (&str, Scope<'_>),
    after: Option<&Key>,
    mut go_on: impl FnMut(Key, u64) -> Result<bool, TxnAbort>,
) -> Result<(), TxnAbort> {
    let (all, beginning) = beginning(namespace, scope);
    let after = after.map(|key| all.clone().raw(key.as_bytes()));
    tx.scan(&beginning, after.as_ref(), false, |node, key| {
        let parts =
            KeyParts::behind(&key, &all).ok_or(TxnAbort::Damaged("a bucket is under another's key"))?;
        let key = Key::from_bytes(parts.rest());
        let is_in = match scope {
            Scope::Bucket(entity, resource) => key.pair() == Some((entity, resource)),
            _ => true,
        };
        if is_in { go_on(key, tx.block_of(node)?) } else { Ok(true) }
    })
}

/// Returns the status of the buckets of a scope.
pub(crate) fn buckets(
    tx: &Tx<'_>,
    known: &mut ShmLimitsCache,
    scope: (&str, Scope<'_>),
    after: Option<&Cursor>,
    limit: usize,
    now: Tick,
) -> Result<Page<BucketStatus>, TxnAbort> {
    let after = after.map(Cursor::parts::<2>).transpose()?.map(|parts| Key::new(&parts));
    let (limit, mut statuses, mut liveness) =
        (limit.clamp(1, PAGE_MAX), Vec::new(), LivenessCache::default());
    each(tx, scope, after.as_ref(), |key, entry| {
        // Keys that are not a pair are skipped.
        if let Some((entity, resource)) = key.pair() {
            let stored = row::read(tx, known, entry, None, RowParts::Bucket)?.stored;
            let stored = stored.as_seen(now, &mut liveness);
            statuses.push(BucketStatus {
                entity: entity.to_owned(),
                resource: resource.to_owned(),
                limits: stored.bucket.peek(&stored.limits, now),
            });
        }
        Ok(statuses.len() <= limit)
    })?;
    Ok(page(statuses, limit, |status| Cursor::of(&[&status.entity, &status.resource])))
}

/// How many buckets are read under one hold of the lock: few enough that no call waits for long.
const LOOKED_AT_ONCE: usize = 500;

/// Returns the activity of some buckets of a scope behind a key: what is in use, and usage that is in no record yet;
/// and the last key that was read if there may be more.
pub(crate) fn activity(
    tx: &Tx<'_>,
    known: &mut ShmLimitsCache,
    scope: (&str, Scope<'_>),
    after: Option<&Key>,
    now: Tick,
) -> Result<(Vec<Activity>, Option<Key>), TxnAbort> {
    let (mut seen, mut found, mut last, mut liveness) = (0, Vec::new(), None, LivenessCache::default());
    each(tx, scope, after, |key, entry| {
        seen += 1;
        if let Some((entity, resource)) = key.pair() {
            let MeteredBucket { stored, usage } =
                row::read(tx, known, entry, None, RowParts::BucketAndUsage)?;
            let stored = stored.as_seen(now, &mut liveness);
            found.push(Activity {
                entity: entity.into(),
                resource: resource.into(),
                hour: usage.map(|sums| (sums.starts(), sums.events().into())),
                others: Vec::new(),
                in_use: Activity::in_use(&stored.bucket.peek(&stored.limits, now)),
            });
        }
        last = Some(key);
        Ok(seen < LOOKED_AT_ONCE)
    })?;
    Ok((found, last.filter(|_| seen >= LOOKED_AT_ONCE)))
}

/// Returns the record of usage at a key, with the usage added that its bucket has counted since.
pub(crate) fn usage_at(
    tx: &Tx<'_>,
    known: &mut ShmLimitsCache,
    key: &ItemKey,
    now: Tick,
) -> Result<Option<Item>, TxnAbort> {
    let there = tx.record(key, now)?;
    let Some((namespace, entity, resource)) = bucket_of_usage(key) else { return Ok(there) };
    let Some(entry) = row::find(tx, namespace, &Key::new(&[entity, resource]))? else { return Ok(there) };
    match row::read(tx, known, entry, None, RowParts::BucketAndUsage)?.usage {
        Some(sums) => Ok(sums.added_to(key, there, &tx.arena.usage_retention)),
        None => Ok(there),
    }
}

/// Forgets buckets and the usage that was not yet written, at most [`FORGET_MAX`], and returns which.
pub(crate) fn forget(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    (namespace, scope): (&str, Scope<'_>),
) -> Result<Vec<Key>, TxnAbort> {
    let mut found = Vec::new();
    each(tx, (namespace, scope), None, |key, entry| {
        found.push((key, entry));
        Ok(found.len() < FORGET_MAX)
    })?;
    for (_, entry) in &found {
        row::remove(tx, known, *entry)?;
    }
    Ok(found.into_iter().map(|(key, _)| key).collect())
}

/// Marks the buckets of a scope as forgotten.
pub(crate) fn mark_forgotten(
    tx: &mut Tx<'_>,
    (namespace, scope): (&str, Scope<'_>),
    now: Tick,
) -> Result<(), TxnAbort> {
    // In a closed namespace nothing is settled any more, and a purge leaves no record.
    if apply::is_closed(tx, namespace)? {
        return Ok(());
    }
    tx.write_records(&[forgotten_write(namespace, scope, now)], now)
}

/// Writes the usage of some buckets of a scope behind a key; returns the last key that was read if there may be more.
pub(crate) fn write_usage(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    (namespace, scope): (&str, Scope<'_>),
    after: Option<&Key>,
    now: Tick,
) -> Result<Option<Key>, TxnAbort> {
    let (mut seen, mut found, mut last) = (0, Vec::new(), None);
    each(tx, (namespace, scope), after, |key, entry| {
        seen += 1;
        if row::has_usage(tx, entry)? {
            found.push((key.clone(), entry));
        }
        last = Some(key);
        Ok(seen < SEEN_AT_ONCE && found.len() < WRITTEN_AT_ONCE)
    })?;
    for (key, entry) in &found {
        let mut bucket = row::read(tx, known, *entry, None, RowParts::BucketAndUsage)?;
        if let (Some(sums), Some((entity, resource))) = (bucket.usage.take(), key.pair()) {
            let writes = sums.writes(namespace, entity, resource, &tx.arena.usage_retention);
            tx.write_records(&writes, now)?;
            row::write(tx, known, *entry, &bucket, RowParts::BucketAndUsage)?;
        }
    }
    Ok(last.filter(|_| seen >= SEEN_AT_ONCE || found.len() >= WRITTEN_AT_ONCE))
}
