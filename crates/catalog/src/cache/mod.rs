//! What was read of the store, and for how long it is believed.
//!
//! Two rules, whichever the store allows. If it reports its revision at no cost, what was read is true exactly as long
//! as that stays the same. If not, it is believed for a time, while own writes are seen at once: a write forgets what
//! it touched, and a caller that was reading meanwhile does not cache what it read.

mod generations;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Span, Tick};
use tollgate_store::records::ItemKey;
use tollgate_store::{Mutex, MutexGuard, PerProcess, generation};

use crate::disable::Switches;
use crate::{OnUnavailable, StoredLimits};
use generations::Generations;

/// What records say that chains are made of.
#[derive(Clone, Debug)]
pub(crate) enum CachedRecord {
    /// There is no such record.
    Nothing,
    /// Whose child an entity is, and whether it takes from its parent too.
    Entity { parent: Option<String>, cascades: bool },
    /// Stored limits.
    Config(Arc<StoredLimits>),
    /// What is switched off, and what is not.
    Switches(Arc<Switches>),
}

/// A record as it was read.
#[derive(Clone, Debug)]
pub(crate) struct CacheEntry {
    pub(crate) known: CachedRecord,
    /// A version of the namespace's config that the record is not older than.
    pub(crate) version: u64,
    /// Until when it is believed.
    pub(crate) expires: Tick,
}

/// When something was read, to decide whether it still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheEpoch {
    revision: Option<u64>,
    epoch: u64,
    now: Tick,
    /// Until when whatever is read now is believed.
    pub(crate) expires: Tick,
}

/// How often what was asked was remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// How many records were remembered.
    pub hits: u64,
    /// How many were read from the store.
    pub misses: u64,
    /// How many of the hits were remembered not to be there.
    pub negative_hits: u64,
    /// How many are remembered now.
    pub entries: usize,
}

pub(crate) struct Cache {
    ttl: Span,
    /// Another number after each own write.
    epoch: AtomicU64,
    entries_max: usize,
    inner: PerProcess<Mutex<CacheInner>>,
}

struct CacheInner {
    revision: Option<u64>,
    entries: Generations<ItemKey, CacheEntry>,
    version: Option<u64>,
    on_unavailable: Option<OnUnavailable>,
    stats: CacheStats,
}

impl Cache {
    /// A cache that believes what it read for `ttl`, of at most `entries_max`. Of no time and of fewer than two
    /// entries it remembers nothing.
    pub(crate) fn new(ttl: Span, entries_max: usize) -> Cache {
        let ttl = if entries_max < 2 { Span::ZERO } else { ttl };
        let inner = PerProcess::of(generation().into(), CacheInner::of(entries_max));
        Cache { ttl, epoch: AtomicU64::new(0), entries_max, inner }
    }

    /// What is remembered in this process. One that was forked off reads anew: a thread of its parent may have it locked.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, CacheInner> {
        self.inner.get_or(generation().into(), |_| CacheInner::of(self.entries_max)).lock()
    }

    /// What is read from now on is as of this moment. To be taken before the store is asked.
    pub(crate) fn moment(&self, revision: Option<u64>, now: Tick) -> CacheEpoch {
        let expires = match (self.is_on(), revision) {
            (false, _) => Tick::ZERO,
            (true, Some(_)) => Tick::MAX,
            (true, None) => now + self.ttl,
        };
        CacheEpoch { revision, epoch: self.epoch.load(Ordering::Acquire), now, expires }
    }

    fn is_on(&self) -> bool {
        self.ttl > Span::ZERO
    }

    /// Whether what was read at `moment`, and is believed until `expires`, still holds.
    #[inline]
    pub(crate) fn holds(&self, moment: &CacheEpoch, expires: Tick, revision: Option<u64>, now: Tick) -> bool {
        moment.epoch == self.epoch.load(Ordering::Acquire) && moment.revision == revision && now < expires
    }

    /// What is remembered of each of these records.
    pub(crate) fn look<const N: usize>(
        &self,
        moment: &CacheEpoch,
        keys: &[ItemKey; N],
    ) -> [Option<CacheEntry>; N] {
        let mut inner = self.lock();
        inner.move_to(moment.revision);
        keys.each_ref().map(|key| inner.look(moment, key))
    }

    /// What is remembered of a record, believed or not.
    pub(crate) fn peek(&self, key: &ItemKey) -> Option<CachedRecord> {
        self.lock().entries.get(key).map(|entry| entry.known.clone())
    }

    /// Remembers what was read at `moment`, unless something was written since.
    pub(crate) fn keep(&self, moment: &CacheEpoch, read: Vec<(ItemKey, CacheEntry)>) {
        let mut inner = self.lock();
        let still = inner.revision == moment.revision && self.epoch.load(Ordering::Acquire) == moment.epoch;
        if still && self.is_on() {
            read.into_iter().for_each(|(key, entry)| inner.entries.insert(key, entry));
        }
    }

    /// Forgets these records, because they were written.
    pub(crate) fn forget(&self, keys: &[&ItemKey]) {
        let mut inner = self.lock();
        keys.iter().for_each(|key| inner.entries.remove(*key));
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Forgets all records.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.entries.clear();
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// The last version of the namespace's config that was seen.
    pub(crate) fn version(&self) -> Option<u64> {
        self.lock().version
    }

    pub(crate) fn saw_version(&self, version: u64) {
        let mut inner = self.lock();
        inner.version = inner.version.max(Some(version));
    }

    /// What the system said last about a store that does not answer.
    pub(crate) fn on_unavailable(&self) -> Option<OnUnavailable> {
        self.lock().on_unavailable
    }

    pub(crate) fn saw_on_unavailable(&self, on_unavailable: Option<OnUnavailable>) {
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
            entries: Generations::new(entries_max),
            version: None,
            on_unavailable: None,
            stats: CacheStats::default(),
        })
    }

    /// What was read at another revision is no longer true.
    fn move_to(&mut self, revision: Option<u64>) {
        if self.revision != revision {
            self.entries.clear();
            self.revision = revision;
        }
    }

    fn look(&mut self, moment: &CacheEpoch, key: &ItemKey) -> Option<CacheEntry> {
        let version = self.version.unwrap_or(0);
        let is_believed = |entry: &&CacheEntry| moment.now < entry.expires && entry.version >= version;
        let found = self.entries.get(key).filter(is_believed).cloned();
        match &found {
            None => self.stats.misses += 1,
            Some(entry) => {
                self.stats.hits += 1;
                self.stats.negative_hits += u64::from(matches!(entry.known, CachedRecord::Nothing));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(sort: &str) -> ItemKey {
        ItemKey::new("p", sort)
    }

    fn entry(moment: &CacheEpoch) -> CacheEntry {
        CacheEntry { known: CachedRecord::Nothing, version: 1, expires: moment.expires }
    }

    #[test]
    fn what_was_read_while_something_was_written_is_not_kept() {
        let cache = Cache::new(Span::from_secs(60), 100);
        let moment = cache.moment(None, Tick::ZERO);
        cache.forget(&[&key("other")]);
        cache.keep(&moment, vec![(key("a"), entry(&moment))]);
        assert!(cache.look(&moment, &[key("a")])[0].is_none());

        let moment = cache.moment(None, Tick::ZERO);
        cache.keep(&moment, vec![(key("a"), entry(&moment))]);
        assert!(cache.look(&moment, &[key("a")])[0].is_some());
        let later = cache.moment(None, Tick::from_secs(60));
        assert!(cache.look(&later, &[key("a")])[0].is_none());
    }

    #[test]
    fn a_late_reader_does_not_bring_back_an_earlier_revision() {
        let cache = Cache::new(Span::from_secs(60), 100);
        let early = cache.moment(Some(1), Tick::ZERO);
        assert!(cache.look(&early, &[key("a")])[0].is_none());
        let late = cache.moment(Some(2), Tick::ZERO);
        assert!(cache.look(&late, &[key("a")])[0].is_none());
        cache.keep(&early, vec![(key("a"), entry(&early))]);
        assert!(cache.look(&late, &[key("a")])[0].is_none());
    }
}
