//! A map by id that stores hashes instead of ids.

use std::hash::{BuildHasher, RandomState};

/// How many segments a map has. Each grows by itself, so that only one of them is in memory twice
/// while it does.
const SEGMENTS: usize = 64;

/// How many slots a new segment has, and by how many a segment grows at least.
const SLOTS_MIN: usize = 8;

/// The hash in a slot that is free.
const FREE: u128 = 0;

/// A map by id that fits millions of entries into memory: it stores 128 bits of a hash instead of
/// the text of an id, and takes 18 to 21 bytes for each id besides its value.
///
/// The hash is SipHash, twice, with keys that each map draws anew, so no choice of ids makes two of
/// them collide. By chance two of `n` ids collide with a probability of n² / 2^129: of a billion
/// ids, once in 10^20 runs. Such an id would be mistaken for the other one.
#[derive(Debug)]
pub struct IdMap<V> {
    hashers: [RandomState; 2],
    segments: Vec<HashSegment<V>>,
    len: usize,
}

/// A segment of a map: slots in a row, each with a hash or free. A hash is in the slot that it
/// selects, or in one of those behind it with no free slot in between.
#[derive(Debug)]
struct HashSegment<V> {
    hashes: Vec<u128>,
    values: Vec<V>,
    len: usize,
}

impl<V: Copy + Default> Default for IdMap<V> {
    fn default() -> IdMap<V> {
        IdMap::new()
    }
}

impl<V: Copy + Default> IdMap<V> {
    /// Returns an empty map.
    pub fn new() -> IdMap<V> {
        let hashers = [RandomState::new(), RandomState::new()];
        let segment = || HashSegment { hashes: Vec::new(), values: Vec::new(), len: 0 };
        IdMap { hashers, segments: std::iter::repeat_with(segment).take(SEGMENTS).collect(), len: 0 }
    }

    /// Returns how many ids the map has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the map has no id.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of an id.
    pub fn get(&self, id: &str) -> Option<V> {
        let hash = self.hash(id);
        let segment = &self.segments[segment_of(hash)];
        let slot = segment.find(hash).filter(|slot| segment.hashes[*slot] == hash)?;
        Some(segment.values[slot])
    }

    /// Returns a mutable reference to the value of an id.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        let hash = self.hash(id);
        let segment = &mut self.segments[segment_of(hash)];
        let slot = segment.find(hash).filter(|slot| segment.hashes[*slot] == hash)?;
        segment.values.get_mut(slot)
    }

    /// Sets the value of an id. Returns the previous value.
    pub fn insert(&mut self, id: &str, value: V) -> Option<V> {
        let hash = self.hash(id);
        let old = self.segments[segment_of(hash)].insert(hash, value);
        self.len += usize::from(old.is_none());
        old
    }

    fn hash(&self, id: &str) -> u128 {
        let [high, low] = self.hashers.each_ref().map(|hasher| u128::from(hasher.hash_one(id)));
        let hash = (high << 64) | low;
        if hash == FREE { 1 } else { hash }
    }
}

impl<V: Copy + Default> HashSegment<V> {
    /// Returns the slot of a hash, or the free one where it belongs. A segment with slots always
    /// has a free one.
    fn find(&self, hash: u128) -> Option<usize> {
        let slots = self.hashes.len();
        if slots == 0 {
            return None;
        }
        // The lower half of the hash, as a fraction of the slots.
        let mut slot = ((u128::from(hash as u64) * slots as u128) >> 64) as usize;
        while self.hashes[slot] != hash && self.hashes[slot] != FREE {
            slot = if slot + 1 == slots { 0 } else { slot + 1 };
        }
        Some(slot)
    }

    fn insert(&mut self, hash: u128, value: V) -> Option<V> {
        if let Some(slot) = self.find(hash).filter(|slot| self.hashes[*slot] == hash) {
            return Some(std::mem::replace(&mut self.values[slot], value));
        }
        // At least an eighth of the slots is free, or a search takes too long.
        if (self.len + 1) * 8 > self.hashes.len() * 7 {
            self.grow();
        }
        self.put(hash, value);
        None
    }

    fn put(&mut self, hash: u128, value: V) {
        if let Some(slot) = self.find(hash) {
            self.hashes[slot] = hash;
            self.values[slot] = value;
            self.len += 1;
        }
    }

    /// Adds an eighth of the slots: with twice as many, half of them would be empty.
    fn grow(&mut self) {
        let slots = self.hashes.len() + (self.hashes.len() / 8).max(SLOTS_MIN);
        let grown = HashSegment { hashes: vec![FREE; slots], values: vec![V::default(); slots], len: 0 };
        let old = std::mem::replace(self, grown);
        for (hash, value) in old.hashes.into_iter().zip(old.values).filter(|(hash, _)| *hash != FREE) {
            self.put(hash, value);
        }
    }
}

/// Returns the index of the segment of a hash, by its highest bits.
fn segment_of(hash: u128) -> usize {
    (hash >> 122) as usize % SEGMENTS
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use tollgate_store::{SplitMix64, random_u64};

    #[test]
    fn it_behaves_like_a_map_of_the_ids() {
        let seed = random_u64();
        println!("seed {seed}");
        let (mut random, mut ids, mut texts) = (SplitMix64::new(seed), IdMap::new(), HashMap::new());
        for step in 0..100_000_u64 {
            let id = (random.next_u64() % 30_000).to_string();
            assert_eq!(ids.get(&id), texts.get(&id).copied(), "{id}");
            if step % 3 > 0 {
                assert_eq!(ids.insert(&id, step), texts.insert(id, step));
            } else if let Some(value) = texts.get_mut(&id) {
                *value += 1;
                *ids.get_mut(&id).expect("it is there") += 1;
            }
        }
        assert_eq!(ids.len(), texts.len());
        assert!(texts.iter().all(|(id, value)| ids.get(id) == Some(*value)));
        assert_eq!((ids.get("x"), ids.get_mut("x")), (None, None));
    }

    #[test]
    fn at_most_a_fifth_of_the_slots_is_free() {
        let mut ids = IdMap::new();
        for number in 0..100_000_u32 {
            ids.insert(&number.to_string(), ());
        }
        let slots: usize = ids.segments.iter().map(|segment| segment.hashes.capacity()).sum();
        assert!(slots * 4 <= ids.len() * 5, "{slots}");
    }
}
