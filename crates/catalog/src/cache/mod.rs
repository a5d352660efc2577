//! The cache of records, and how long its entries are valid.
//!
//! There are two rules, depending on the store. If the store reports its revision at no cost,
//! entries are valid exactly as long as the revision stays the same. Otherwise they are valid for a
//! time, while own writes are visible at once: a write removes the entries of its records, and a
//! caller that was reading meanwhile does not cache what it read.

mod partitions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Span, Tick};
use tollgate_store::records::ItemKey;
use tollgate_store::{Mutex, MutexGuard, PerProcess, generation};

use crate::disable::Switches;
use crate::{OnUnavailable, StoredLimits};
use partitions::Partitions;

/// A cached record that chains are made of.
#[derive(Clone, Debug)]
pub(crate) enum CachedRecord {
    /// The record does not exist.
    Nothing,
    /// An entity.
    Entity(Arc<EntityRecord>),
    /// Stored limits.
    Config(Arc<StoredLimits>),
    /// The switches of an entity or a resource.
    Switches(Arc<Switches>),
}

/// The parent of an entity, and whether its calls are charged to it, too.
#[derive(Debug)]
pub(crate) struct EntityRecord {
    pub(crate) parent: Option<String>,
    pub(crate) cascades: bool,
}

/// A record as it was read.
#[derive(Clone, Debug)]
pub(crate) struct CacheEntry {
    pub(crate) record: CachedRecord,
    /// A version of the namespace's config that the record is not older than.
    pub(crate) version: u64,
    /// When the entry expires.
    pub(crate) expires: Tick,
}

/// The state of the cache when a read began, to decide whether the result is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheEpoch {
    revision: Option<u64>,
    writes: u64,
    now: Tick,
    /// When records that are read now expire.
    pub(crate) expires: Tick,
}

/// The hits and misses of the cache.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Level, Registry};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// catalog.set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 100)])?).wait()?;
/// catalog.chain("user-1", "gpt-4").wait()?;
/// let before = catalog.cache_stats();
/// catalog.chain("user-1", "gpt-4").wait()?;
/// let after = catalog.cache_stats();
/// assert_eq!((after.misses, after.hits), (before.misses, before.hits + 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// The number of records that were found in the cache.
    pub hits: u64,
    /// The number of records that were read from the store.
    pub misses: u64,
    /// The number of hits on records that do not exist.
    pub negative_hits: u64,
    /// The number of records in the cache.
    pub entries: usize,
}

pub(crate) struct Cache {
    ttl: Span,
    /// Counts own writes.
    writes: AtomicU64,
    entries_max: usize,
    inner: PerProcess<Mutex<CacheInner>>,
}

struct CacheInner {
    revision: Option<u64>,
    entries: Partitions,
    version: Option<u64>,
    on_unavailable: Option<OnUnavailable>,
    stats: CacheStats,
}

impl Cache {
    /// Creates a cache whose entries are valid for `ttl`, with at most `entries_max` of them. With
    /// a `ttl` of zero or fewer than two entries it caches nothing.
    pub(crate) fn new(ttl: Span, entries_max: usize) -> Cache {
        let ttl = if entries_max < 2 { Span::ZERO } else { ttl };
        let inner = PerProcess::of(generation().into(), CacheInner::of(entries_max));
        Cache { ttl, writes: AtomicU64::new(0), entries_max, inner }
    }

    /// Locks the cache of this process. A forked process starts with an empty cache: a thread of
    /// its parent may have it locked.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, CacheInner> {
        self.inner.get_or(generation().into(), |_| CacheInner::of(self.entries_max)).lock()
    }

    /// Returns the epoch of a read that begins now. It must be taken before the store is asked.
    pub(crate) fn epoch(&self, revision: Option<u64>, now: Tick) -> CacheEpoch {
        let expires = match (self.is_on(), revision) {
            (false, _) => Tick::ZERO,
            (true, Some(_)) => Tick::MAX,
            (true, None) => now + self.ttl,
        };
        CacheEpoch { revision, writes: self.writes.load(Ordering::Acquire), now, expires }
    }

    fn is_on(&self) -> bool {
        self.ttl > Span::ZERO
    }

    /// Returns true if a result of `epoch` that expires at `expires` is still valid.
    #[inline]
    pub(crate) fn holds(&self, epoch: &CacheEpoch, expires: Tick, revision: Option<u64>, now: Tick) -> bool {
        epoch.writes == self.writes.load(Ordering::Acquire) && epoch.revision == revision && now < expires
    }

    /// Looks up each of these records, by partition and sort key. A partition is looked up once for
    /// those of its records that are one behind the other.
    pub(crate) fn lookup<const N: usize>(
        &self,
        epoch: &CacheEpoch,
        keys: &[(&str, &str); N],
    ) -> [Option<CacheEntry>; N] {
        let mut inner = self.lock();
        inner.move_to(epoch.revision);
        let mut found = [const { None }; N];
        let mut places = found.iter_mut();
        for keys in keys.chunk_by(|one, other| one.0 == other.0) {
            inner.lookup(epoch, keys, &mut places);
        }
        found
    }

    /// Returns the cached record, valid or not.
    pub(crate) fn peek(&self, (partition, sort): (&str, &str)) -> Option<CachedRecord> {
        self.lock().entries.get(partition)?.get(sort).map(|entry| entry.record.clone())
    }

    /// Caches what was read since `epoch`, unless a write happened meanwhile.
    pub(crate) fn insert(&self, epoch: &CacheEpoch, read: Vec<(ItemKey, CacheEntry)>) {
        let mut inner = self.lock();
        let is_unchanged =
            inner.revision == epoch.revision && self.writes.load(Ordering::Acquire) == epoch.writes;
        if is_unchanged && self.is_on() {
            inner.entries.insert(read);
        }
    }

    /// Removes these records, because they were written.
    pub(crate) fn remove<'k>(&self, keys: impl IntoIterator<Item = (&'k str, &'k str)>) {
        let mut inner = self.lock();
        keys.into_iter().for_each(|(partition, sort)| inner.entries.remove(partition, sort));
        self.writes.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes all records.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.entries.clear();
        self.writes.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the latest version of the namespace's config that was seen.
    pub(crate) fn version(&self) -> Option<u64> {
        self.lock().version
    }

    pub(crate) fn record_version(&self, version: u64) {
        let mut inner = self.lock();
        inner.version = inner.version.max(Some(version));
    }

    /// Returns the latest policy of the system for a store that does not answer.
    pub(crate) fn on_unavailable(&self) -> Option<OnUnavailable> {
        self.lock().on_unavailable
    }

    pub(crate) fn record_on_unavailable(&self, on_unavailable: Option<OnUnavailable>) {
        self.lock().on_unavailable = on_unavailable;
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let inner = self.lock();
        CacheStats { entries: inner.entries.len(), ..inner.stats }
    }
}

impl CacheInner {
    fn of(entries_max: usize) -> Mutex<CacheInner> {
        Mutex::new(CacheInner {
            revision: None,
            entries: Partitions::new(entries_max),
            version: None,
            on_unavailable: None,
            stats: CacheStats::default(),
        })
    }

    /// Drops the entries of another revision.
    fn move_to(&mut self, revision: Option<u64>) {
        if self.revision != revision {
            self.entries.clear();
            self.revision = revision;
        }
    }

    /// Looks up records of one partition, each for the next place in `found`.
    fn lookup<'f>(
        &mut self,
        epoch: &CacheEpoch,
        keys: &[(&str, &str)],
        found: impl Iterator<Item = &'f mut Option<CacheEntry>>,
    ) {
        let version = self.version.unwrap_or(0);
        let is_valid = |entry: &&CacheEntry| epoch.now < entry.expires && entry.version >= version;
        let records = keys.first().and_then(|(partition, _)| self.entries.get(partition));
        for ((_, sort), found) in keys.iter().zip(found) {
            *found = records.and_then(|records| records.get(sort)).filter(is_valid).cloned();
            match found {
                None => self.stats.misses += 1,
                Some(entry) => {
                    self.stats.hits += 1;
                    self.stats.negative_hits += u64::from(matches!(entry.record, CachedRecord::Nothing));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(sort: &str) -> ItemKey {
        ItemKey::new("p", sort)
    }

    fn entry(epoch: &CacheEpoch) -> CacheEntry {
        CacheEntry { record: CachedRecord::Nothing, version: 1, expires: epoch.expires }
    }

    #[test]
    fn records_that_were_read_during_a_write_are_not_cached() {
        let cache = Cache::new(Span::from_secs(60), 100);
        let epoch = cache.epoch(None, Tick::ZERO);
        cache.remove([("p", "other")]);
        cache.insert(&epoch, vec![(key("a"), entry(&epoch))]);
        assert!(cache.lookup(&epoch, &[("p", "a")])[0].is_none());

        let epoch = cache.epoch(None, Tick::ZERO);
        cache.insert(&epoch, vec![(key("a"), entry(&epoch))]);
        assert!(cache.lookup(&epoch, &[("p", "a")])[0].is_some());
        let later = cache.epoch(None, Tick::from_secs(60));
        assert!(cache.lookup(&later, &[("p", "a")])[0].is_none());
    }

    #[test]
    fn a_late_reader_does_not_cache_records_of_an_earlier_revision() {
        let cache = Cache::new(Span::from_secs(60), 100);
        let early = cache.epoch(Some(1), Tick::ZERO);
        assert!(cache.lookup(&early, &[("p", "a")])[0].is_none());
        let late = cache.epoch(Some(2), Tick::ZERO);
        assert!(cache.lookup(&late, &[("p", "a")])[0].is_none());
        cache.insert(&early, vec![(key("a"), entry(&early))]);
        assert!(cache.lookup(&late, &[("p", "a")])[0].is_none());
    }
}
