//! A bounded map with two generations, an approximation of LRU.
use std::borrow::Borrow;
use std::hash::Hash;

use hashbrown::HashMap;

type GenerationMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A bounded map that evicts roughly the entry that was unused for longest.
///
/// An entry that is used moves to the young generation. When the young are half of the bound, they
/// become the old and the old are evicted: there are no lists to maintain, and no search when the
/// map is full.
pub(super) struct Generations<K, V> {
    young: GenerationMap<K, V>,
    old: GenerationMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq, V> Generations<K, V> {
    pub(super) fn new(entries_max: usize) -> Generations<K, V> {
        Generations {
            young: GenerationMap::default(),
            old: GenerationMap::default(),
            half: (entries_max / 2).max(1),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub(super) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if let Some((key, value)) = self.old.remove_entry(key) {
            self.insert(key, value);
        }
        self.young.get(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_entries_stay_and_the_size_is_bounded() {
        let mut map = Generations::new(10);
        map.insert(1_000, ());
        for key in 0..100 {
            map.insert(key, ());
            assert!(map.get(&1_000).is_some(), "evicted after {key}");
            assert!(map.get(&key).is_some());
            assert!(map.len() <= 10);
        }
        assert!(map.get(&50).is_none());
        map.remove(&1_000);
        assert!(map.get(&1_000).is_none());
        map.clear();
        assert_eq!(map.len(), 0);
    }
}
