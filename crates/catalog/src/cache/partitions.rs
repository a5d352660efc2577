//! Cached records by partition: bounded, with two generations, an approximation of LRU.

use hashbrown::HashMap;
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
type Records = Vec<(Key, CacheEntry)>;

/// A bounded map of records that evicts roughly the partition that was unused for longest.
///
/// A partition that is used moves to the young generation. When the young have half of the bound,
/// they become the old and the old are evicted: there are no lists to maintain, and no search when
/// the map is full.
pub(super) struct Partitions {
    young: Generation,
    old: Generation,
    half: usize,
}

#[derive(Default)]
struct Generation {
    partitions: HashMap<String, Records, foldhash::fast::RandomState>,
    /// The number of records in all partitions.
    len: usize,
}

impl Generation {
    fn insert(&mut self, partition: String, records: Records) {
        self.len += records.len();
        self.partitions.insert(partition, records);
    }

    fn remove(&mut self, partition: &str) -> Option<(String, Records)> {
        let removed = self.partitions.remove_entry(partition)?;
        self.len -= removed.1.len();
        Some(removed)
    }
}

impl Partitions {
    pub(super) fn new(entries_max: usize) -> Partitions {
        let half = (entries_max / 2).max(1);
        Partitions { young: Generation::default(), old: Generation::default(), half }
    }

    /// Returns the number of records.
    pub(super) fn len(&self) -> usize {
        self.young.len + self.old.len
    }

    pub(super) fn get(&mut self, key: &ItemKey) -> Option<&CacheEntry> {
        if let Some((partition, records)) = self.old.remove(&key.partition) {
            self.put(partition, records);
        }
        let records = self.young.partitions.get(&key.partition)?;
        Some(&records[place_of(records, &sort_of(key))?].1)
    }

    pub(super) fn insert(&mut self, key: ItemKey, entry: CacheEntry) {
        let sort = sort_of(&key);
        let (partition, mut records) =
            self.take(&key.partition).unwrap_or_else(|| (key.partition, Records::new()));
        match place_of(&records, &sort) {
            Some(place) => records[place].1 = entry,
            None => {
                if records.len() >= PARTITION_MAX.min(self.half) {
                    records.remove(0);
                }
                records.push((sort, entry));
            }
        }
        self.put(partition, records);
    }

    pub(super) fn remove(&mut self, key: &ItemKey) {
        let sort = sort_of(key);
        if let Some((partition, mut records)) = self.take(&key.partition) {
            records.retain(|(other, _)| *other != sort);
            if !records.is_empty() {
                self.put(partition, records);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.young = Generation::default();
        self.old = Generation::default();
    }

    fn take(&mut self, partition: &str) -> Option<(String, Records)> {
        self.young.remove(partition).or_else(|| self.old.remove(partition))
    }

    /// Puts a partition that is in neither generation among the young.
    fn put(&mut self, partition: String, records: Records) {
        if self.young.len + records.len() > self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(partition, records);
    }
}

fn sort_of(key: &ItemKey) -> Key {
    Key::new(&[&key.sort])
}

fn place_of(records: &Records, sort: &Key) -> Option<usize> {
    records.iter().position(|(other, _)| other == sort)
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

    #[test]
    fn used_entries_stay_and_the_size_is_bounded() {
        let mut map = Partitions::new(10);
        map.insert(key(1_000), entry(0));
        for number in 0..100 {
            map.insert(key(number), entry(number));
            assert!(map.get(&key(1_000)).is_some(), "evicted after {number}");
            assert!(map.get(&key(number)).is_some_and(|entry| entry.version == number));
            assert!(map.len() <= 10);
        }
        assert!(map.get(&key(50)).is_none());
        map.remove(&key(1_000));
        assert!(map.get(&key(1_000)).is_none());
        map.clear();
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn records_of_one_partition_are_apart_and_bounded() {
        for (entries_max, at_most) in [(10, 5), (1_000, PARTITION_MAX)] {
            let mut map = Partitions::new(entries_max);
            let key = |number: u64| ItemKey::new("p", format!("a sort key that is not short {number}"));
            for number in 0..200 {
                map.insert(key(number), entry(0));
                map.insert(key(number), entry(number));
                assert_eq!(map.get(&key(number)).map(|entry| entry.version), Some(number));
                assert!(map.len() <= at_most);
            }
            assert!(map.get(&key(198)).is_some() && map.get(&key(0)).is_none());
            map.remove(&key(199));
            assert_eq!((map.get(&key(199)).is_none(), map.len()), (true, at_most - 1));
        }
    }
}
