//! The tallies of one shard of a namespace.

use std::sync::Arc;

use hashbrown::HashTable;
use tollgate_core::Tick;

use super::tally::Tally;
use crate::Key;

#[derive(Default)]
pub(crate) struct Tallies {
    tallies: HashTable<Arc<Tally>>,
    /// The slot at which the next sweep goes on.
    cursor: usize,
}

/// Which tallies a sweep drops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TallySweep {
    /// Those of an earlier hour.
    Old,
    /// All that no caller has.
    Unused,
}

impl Tallies {
    pub(crate) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Returns how many slots the table has.
    pub(crate) fn places(&self) -> usize {
        self.tallies.num_buckets()
    }

    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<&Arc<Tally>> {
        self.tallies.find(hash, |tally| tally.key().as_bytes() == key)
    }

    pub(crate) fn insert(&mut self, hash: u64, tally: Arc<Tally>, hash_of: impl Fn(&[u8]) -> u64) {
        self.tallies.insert_unique(hash, tally, |tally| hash_of(tally.key().as_bytes()));
    }

    pub(crate) fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Arc<Tally>> {
        let entry = self.tallies.find_entry(hash, |tally| tally.key().as_bytes() == key);
        entry.ok().map(|entry| entry.remove().0)
    }

    /// Removes at most `most` tallies for which `is_wanted` returns true.
    pub(crate) fn remove_if(&mut self, most: usize, is_wanted: impl Fn(&Key) -> bool) -> Vec<Arc<Tally>> {
        self.tallies.extract_if(|tally| is_wanted(tally.key())).take(most).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Tally>> {
        self.tallies.iter()
    }

    /// Sweeps the next `steps` slots. Drops tallies that are written already, and returns those that are not: writing
    /// takes too long to do it with the table locked.
    pub(crate) fn sweep(
        &mut self,
        steps: usize,
        which: TallySweep,
        now: Tick,
        hash_of: impl Fn(&[u8]) -> u64,
    ) -> Vec<Arc<Tally>> {
        let mut unwritten = Vec::new();
        for _ in 0..steps.min(self.tallies.num_buckets()) {
            self.cursor = (self.cursor + 1) % self.tallies.num_buckets();
            // Handles are only given out under the lock of the shard, so one that only the table has stays alone.
            let unused = self.tallies.get_bucket(self.cursor).filter(|tally| Arc::strong_count(tally) == 1);
            let Some(tally) = unused else { continue };
            let (is_old, is_unwritten) = tally.is_old(now);
            if !is_old && which == TallySweep::Old {
                continue;
            }
            if is_unwritten {
                unwritten.push(Arc::clone(tally));
            } else if let Ok(entry) = self.tallies.get_bucket_entry(self.cursor) {
                entry.remove();
            }
        }
        if self.tallies.len() < self.tallies.capacity() / 8 {
            self.tallies.shrink_to(self.tallies.len() * 2, |tally| hash_of(tally.key().as_bytes()));
        }
        unwritten
    }
}
