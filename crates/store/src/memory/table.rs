//! One shard of a namespace: a table of cells that is swept a few at a time.

use std::sync::Arc;

use hashbrown::HashTable;
use tollgate_core::Tick;

use crate::{BucketCell, Key};

/// Which of the cells that equal fresh ones a sweep drops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellSweep {
    /// Those without usage of the current hour: writing it with the hour takes less time than writing it with each sweep.
    Uncounted,
    /// All of them, after their usage was written.
    All,
}

#[derive(Default)]
pub(crate) struct CellTable {
    cells: HashTable<Arc<BucketCell>>,
    /// The slot at which the next sweep goes on.
    cursor: usize,
    /// When a bucket was last dropped. New ones have that stamp: should the clock have gone back since, they must not
    /// earn again what the dropped one had earned.
    dropped_at: Tick,
}

impl CellTable {
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<&Arc<BucketCell>> {
        self.cells.find(hash, |cell| cell.key().as_bytes() == key)
    }

    pub(crate) fn insert(&mut self, hash: u64, cell: Arc<BucketCell>, hash_of: impl Fn(&[u8]) -> u64) {
        self.cells.insert_unique(hash, cell, |cell| hash_of(cell.key().as_bytes()));
    }

    /// Returns the table of a forked process, without the cells that a thread of the parent had locked at the fork.
    pub(crate) fn of_a_fork(&self, hash_of: impl Fn(&[u8]) -> u64) -> CellTable {
        let mut table = CellTable { dropped_at: self.dropped_at, ..CellTable::default() };
        for cell in self.cells.iter().filter_map(|cell| cell.of_a_fork()) {
            table.insert(hash_of(cell.key().as_bytes()), cell, &hash_of);
        }
        table
    }

    /// Drops one cell if no caller has it and it equals a fresh one.
    pub(crate) fn drop_unused(&mut self, hash: u64, key: &[u8], now: Tick) -> bool {
        let entry = self.cells.find_entry(hash, |cell| cell.key().as_bytes() == key);
        let entry = entry.ok().filter(|entry| is_forgettable(entry.get(), now));
        entry.map(|entry| entry.remove()).is_some()
    }

    /// Sweeps the next `steps` slots: has usage of earlier hours written, and drops the cells that no caller has and that equal
    /// fresh ones. Returns how many those were. The slots stay as they are until the table is [shrunk](CellTable::shrink).
    pub(crate) fn sweep(
        &mut self,
        which: CellSweep,
        steps: usize,
        now: Tick,
        write: impl Fn(&BucketCell),
    ) -> usize {
        let before = self.cells.len();
        for _ in 0..steps.min(self.cells.num_buckets()) {
            self.cursor = (self.cursor + 1) % self.cells.num_buckets();
            let Some(cell) = self.cells.get_bucket(self.cursor) else { continue };
            if cell.lock().has_old_sums(now) || which == CellSweep::All && is_idle(cell, now) {
                write(cell);
            }
            if is_forgettable(cell, now)
                && let Ok(entry) = self.cells.get_bucket_entry(self.cursor)
            {
                entry.remove();
                self.dropped_at = self.dropped_at.max(now);
            }
        }
        before - self.cells.len()
    }

    /// Removes at most `most` cells for which `is_wanted` returns true, whatever their state.
    pub(crate) fn remove(
        &mut self,
        most: usize,
        now: Tick,
        is_wanted: impl Fn(&Key) -> bool,
        hash_of: impl Fn(&[u8]) -> u64,
    ) -> Vec<Arc<BucketCell>> {
        let removed: Vec<_> = self.cells.extract_if(|cell| is_wanted(cell.key())).take(most).collect();
        if !removed.is_empty() {
            self.dropped_at = self.dropped_at.max(now);
            self.shrink(hash_of);
        }
        removed
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<BucketCell>> {
        self.cells.iter()
    }

    /// Frees slots, if most are empty.
    pub(crate) fn shrink(&mut self, hash_of: impl Fn(&[u8]) -> u64) {
        if self.cells.len() < self.cells.capacity() / 8 {
            self.cells.shrink_to(self.cells.len() * 2, |cell| hash_of(cell.key().as_bytes()));
        }
    }

    /// Returns the stamp of a new bucket.
    pub(crate) fn fresh_as_of(&self) -> Tick {
        self.dropped_at
    }

    /// Returns how many slots the table has.
    pub(crate) fn places(&self) -> usize {
        self.cells.num_buckets()
    }
}

/// Returns whether only the table has the cell, and it equals a fresh one.
///
/// Handles are only ever given out under the lock of the shard, so a cell that only the table has stays alone
/// for as long as that lock is held.
fn is_idle(cell: &Arc<BucketCell>, now: Tick) -> bool {
    Arc::strong_count(cell) == 1 && cell.lock().is_idle(now)
}

/// Returns whether the cell [is idle](is_idle) and has no usage to write.
fn is_forgettable(cell: &Arc<BucketCell>, now: Tick) -> bool {
    is_idle(cell, now) && cell.lock().unwritten().is_none()
}
