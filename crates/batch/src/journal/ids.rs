//! A map by id that holds no ids.

use std::hash::{BuildHasher, RandomState};

/// How many parts a map has. Each grows by itself, so that only one of them is in memory twice while it does.
const PARTS: usize = 64;

/// How many places a part has when it is made, and by how many it grows at least.
const PLACES_MIN: usize = 8;

/// Stands in a place that is free.
const FREE: u128 = 0;

/// A map by id of which millions fit into memory: it holds 128 bits of a hash instead of the text of an id, and takes 18 to
/// 21 bytes for each id besides its value.
///
/// The hash is SipHash, twice, with keys that each map draws anew, so no choice of ids makes two of them alike. By chance two
/// of `n` ids have one hash with a probability of n² / 2^129: of a billion ids, once in 10^20 runs. Such an id would be taken
/// for the other one.
#[derive(Debug)]
pub struct IdMap<V> {
    hashers: [RandomState; 2],
    parts: Vec<HashSegment<V>>,
    len: usize,
}

/// A part of a map: places in a row, in each of which there is a hash or none. A hash is in the place that it names, or in one
/// of those behind it with none free in between.
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
    /// Returns a map with nothing in it.
    pub fn new() -> IdMap<V> {
        let hashers = [RandomState::new(), RandomState::new()];
        let part = || HashSegment { hashes: Vec::new(), values: Vec::new(), len: 0 };
        IdMap { hashers, parts: std::iter::repeat_with(part).take(PARTS).collect(), len: 0 }
    }

    /// Returns how many ids it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if it has no id.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value of an id.
    pub fn get(&self, id: &str) -> Option<V> {
        let hash = self.hash(id);
        let part = &self.parts[part_of(hash)];
        let place = part.find(hash).filter(|place| part.hashes[*place] == hash)?;
        Some(part.values[place])
    }

    /// Returns the value of an id, to be changed.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut V> {
        let hash = self.hash(id);
        let part = &mut self.parts[part_of(hash)];
        let place = part.find(hash).filter(|place| part.hashes[*place] == hash)?;
        part.values.get_mut(place)
    }

    /// Sets the value of an id. Returns the one that it had.
    pub fn insert(&mut self, id: &str, value: V) -> Option<V> {
        let hash = self.hash(id);
        let old = self.parts[part_of(hash)].insert(hash, value);
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
    /// Returns the place of a hash, or the free one where it belongs. The part has a free place, unless it has none at all.
    fn find(&self, hash: u128) -> Option<usize> {
        let places = self.hashes.len();
        if places == 0 {
            return None;
        }
        // The lower half of the hash, as a fraction of the places.
        let mut place = ((u128::from(hash as u64) * places as u128) >> 64) as usize;
        while self.hashes[place] != hash && self.hashes[place] != FREE {
            place = if place + 1 == places { 0 } else { place + 1 };
        }
        Some(place)
    }

    fn insert(&mut self, hash: u128, value: V) -> Option<V> {
        if let Some(place) = self.find(hash).filter(|place| self.hashes[*place] == hash) {
            return Some(std::mem::replace(&mut self.values[place], value));
        }
        // An eighth of the places is free, or a hash is searched for too long.
        if (self.len + 1) * 8 > self.hashes.len() * 7 {
            self.grow();
        }
        self.put(hash, value);
        None
    }

    fn put(&mut self, hash: u128, value: V) {
        if let Some(place) = self.find(hash) {
            self.hashes[place] = hash;
            self.values[place] = value;
            self.len += 1;
        }
    }

    /// Adds an eighth of the places: twice as many would be half empty.
    fn grow(&mut self) {
        let places = self.hashes.len() + (self.hashes.len() / 8).max(PLACES_MIN);
        let grown = HashSegment { hashes: vec![FREE; places], values: vec![V::default(); places], len: 0 };
        let old = std::mem::replace(self, grown);
        for (hash, value) in old.hashes.into_iter().zip(old.values).filter(|(hash, _)| *hash != FREE) {
            self.put(hash, value);
        }
    }
}

/// Returns the part of a hash, by its highest bits.
fn part_of(hash: u128) -> usize {
    (hash >> 122) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::JitterRandom;

    #[test]
    fn it_is_what_a_map_with_the_ids_is() {
        let seed = JitterRandom::seed();
        println!("seed {seed}");
        let (mut random, mut ids, mut texts) = (JitterRandom::new(seed), IdMap::new(), HashMap::new());
        for step in 0..100_000_u64 {
            let id = (random.next() % 30_000).to_string();
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
    fn a_fifth_of_the_places_is_free_at_most() {
        let mut ids = IdMap::new();
        for number in 0..100_000_u32 {
            ids.insert(&number.to_string(), ());
        }
        let places: usize = ids.parts.iter().map(|part| part.hashes.capacity()).sum();
        assert!(places * 4 <= ids.len() * 5, "{places}");
    }
}
