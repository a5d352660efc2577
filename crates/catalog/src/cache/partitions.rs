//! Cached records by partition: bounded, with two generations, an approximation of LRU.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tollgate_store::Key;
use tollgate_store::records::ItemKey;

use super::CacheEntry;

/// How many records of one partition are cached, such as the limits of one entity for many
/// resources.
const PARTITION_MAX: usize = 64;

/// The cached records of one partition, by sort key. They are read together, so they share one
/// block: in a program with many entities each block is a cache miss (bench row
/// `limiter/resolve-beside-1M-entities`). For the same reason the sort key is a [`Key`], which
/// keeps short text inline.
#[derive(Default)]
pub(super) struct CachedRecords(Vec<(Key, CacheEntry)>);

/// A partition with its records.
struct CachedPartition {
    name: String,
    records: CachedRecords,
}

/// A bounded map of records that evicts roughly the partition that was unused for longest.
///
/// A partition that is used moves to the young generation. When the young have half of the bound,
/// they become the old and the old are evicted: there are no lists to maintain, and no search when
/// the map is full.
pub(super) struct Partitions {
    young: Generation,
    old: Generation,
    half: usize,
    hasher: RandomState,
}

/// Partitions by the hash of their names, which is computed once for both generations.
#[derive(Default)]
struct Generation {
    partitions: HashTable<CachedPartition>,
    /// The number of records in all partitions.
    len: usize,
}

impl CachedRecords {
    /// Returns the record with this sort key.
    pub(super) fn get(&self, sort: &str) -> Option<&CacheEntry> {
        self.place_of(sort).map(|place| &self.0[place].1)
    }

    fn place_of(&self, sort: &str) -> Option<usize> {
        self.0.iter().position(|(other, _)| other.is_only(sort))
    }

    /// Adds a record, in place of an older one or, if there are `most`, of the first.
    fn insert(&mut self, sort: &str, entry: CacheEntry, most: usize) {
        match self.place_of(sort) {
            Some(place) => self.0[place].1 = entry,
            None => {
                if self.0.len() >= most {
                    self.0.remove(0);
                }
                self.0.push((Key::new(&[sort]), entry));
            }
        }
    }
}

impl Generation {
    fn get(&self, hash: u64, name: &str) -> Option<&CachedRecords> {
        self.partitions.find(hash, |partition| partition.name == name).map(|partition| &partition.records)
    }

    fn insert(&mut self, hash: u64, partition: CachedPartition, hasher: &RandomState) {
        self.len += partition.records.0.len();
        self.partitions.insert_unique(hash, partition, |other| hasher.hash_one(&*other.name));
    }

    fn remove(&mut self, hash: u64, name: &str) -> Option<CachedPartition> {
        let entry = self.partitions.find_entry(hash, |partition| partition.name == name).ok()?;
        let (removed, _) = entry.remove();
        self.len -= removed.records.0.len();
        Some(removed)
    }
}

impl Partitions {
    pub(super) fn new(entries_max: usize) -> Partitions {
        let half = (entries_max / 2).max(1);
        Partitions {
            young: Generation::default(),
            old: Generation::default(),
            half,
            hasher: RandomState::default(),
        }
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> usize {
        self.young.len + self.old.len
    }

    /// Returns the records of a partition, which is used now.
    pub(super) fn get(&mut self, name: &str) -> Option<&CachedRecords> {
        let hash = self.hasher.hash_one(name);
        if let Some(partition) = self.old.remove(hash, name) {
            self.put(hash, partition);
        }
        self.young.get(hash, name)
    }

    /// Adds records. Those of one partition are one behind the other, so that it is looked up once.
    pub(super) fn insert(&mut self, records: impl IntoIterator<Item = (ItemKey, CacheEntry)>) {
        let most = PARTITION_MAX.min(self.half);
        let mut records = records.into_iter().peekable();
        while let Some((ItemKey { partition: name, sort }, entry)) = records.next() {
            let hash = self.hasher.hash_one(&*name);
            let known = self.take(hash, &name);
            let mut partition =
                known.unwrap_or_else(|| CachedPartition { name, records: CachedRecords::default() });
            partition.records.insert(&sort, entry, most);
            while let Some((key, entry)) = records.next_if(|(key, _)| key.partition == partition.name) {
                partition.records.insert(&key.sort, entry, most);
            }
            self.put(hash, partition);
        }
    }

    pub(super) fn remove(&mut self, name: &str, sort: &str) {
        let hash = self.hasher.hash_one(name);
        if let Some(mut partition) = self.take(hash, name) {
            if let Some(place) = partition.records.place_of(sort) {
                partition.records.0.remove(place);
            }
            if !partition.records.0.is_empty() {
                self.put(hash, partition);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.young = Generation::default();
        self.old = Generation::default();
    }

    fn take(&mut self, hash: u64, name: &str) -> Option<CachedPartition> {
        self.young.remove(hash, name).or_else(|| self.old.remove(hash, name))
    }

    /// Puts a partition that is in neither generation among the young.
    fn put(&mut self, hash: u64, partition: CachedPartition) {
        if self.young.len + partition.records.0.len() > self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, partition, &self.hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::super::CachedRecord;
    use super::*;
    use tollgate_core::Tick;

    fn entry(version: u64) -> CacheEntry {
        CacheEntry { record: CachedRecord::Nothing, version, expires: Tick::MAX }
    }

    fn key(partition: u64) -> ItemKey {
        ItemKey::new(partition.to_string(), "sort")
    }

    /// Inserts one record.
    fn insert(map: &mut Partitions, key: ItemKey, entry: CacheEntry) {
        map.insert([(key, entry)]);
    }

    /// Returns the version of a record that is there.
    fn get(map: &mut Partitions, key: &ItemKey) -> Option<u64> {
        map.get(&key.partition)?.get(&key.sort).map(|entry| entry.version)
    }

    #[test]
    fn used_entries_stay_and_the_size_is_bounded() {
        let mut map = Partitions::new(10);
        insert(&mut map, key(1_000), entry(0));
        for number in 0..100 {
            insert(&mut map, key(number), entry(number));
            assert!(get(&mut map, &key(1_000)).is_some(), "evicted after {number}");
            assert!(get(&mut map, &key(number)) == Some(number));
            assert!(map.len() <= 10);
        }
        assert!(get(&mut map, &key(50)).is_none());
        map.remove("1000", "sort");
        assert!(get(&mut map, &key(1_000)).is_none());
        map.clear();
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn records_of_one_partition_are_apart_and_bounded() {
        for (entries_max, at_most) in [(10, 5), (1_000, PARTITION_MAX)] {
            let mut map = Partitions::new(entries_max);
            let key = |number: u64| ItemKey::new("p", format!("a sort key that is not short {number}"));
            for number in 0..200 {
                insert(&mut map, key(number), entry(0));
                insert(&mut map, key(number), entry(number));
                assert_eq!(get(&mut map, &key(number)), Some(number));
                assert!(map.len() <= at_most);
            }
            assert!(get(&mut map, &key(198)).is_some() && get(&mut map, &key(0)).is_none());
            map.remove("p", &key(199).sort);
            assert_eq!((get(&mut map, &key(199)), map.len()), (None, at_most - 1));
        }
    }
}
