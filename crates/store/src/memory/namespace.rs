//! A namespace: its cells by key, spread over shards.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tollgate_core::{Limits, Tick};

use super::records::RecordTable;
use super::table::{CellSweep, CellTable};
use crate::sync::Mutex;
use crate::usage::UsageRetention;
use crate::{BucketCell, Key, PerProcess, StoreError, generation};

/// Seeded, so that no client can choose keys that collide in one place.
#[cfg(not(loom))]
use foldhash::fast::RandomState as Hasher;

/// loom needs all runs of a model to be alike.
#[cfg(loom)]
use foldhash::fast::FixedState as Hasher;

/// Shards are a power of two, so that a few bits of the hash choose one.
pub(super) const SHARDS: usize = 64;

/// How many slots of the table are checked for each new key. Two keep pace with any growth.
const SWEPT_PER_INSERT: usize = 2;

/// How many slots of its shard a new key may check for an idle one, once the namespace is full.
const SWEPT_WHEN_FULL: usize = 1_024;

/// How many slots are checked by [`NamespaceTable::sweep`] with the lock of their shard held.
const SWEPT_AT_ONCE: usize = 64;

/// How many slots of every other shard it may check after that.
const SWEPT_ELSEWHERE: usize = 16;

/// The buckets of one namespace.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Span, demand};
/// use tollgate_store::{Memory, Priority, Store};
///
/// let store = Memory::default();
/// // A caller that keeps the table saves a lookup with every take.
/// let (app, limits) = (store.namespace("app"), Limits::new([Limit::per_minute("rpm", 1)])?);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// let mut take = || app.try_take(store.clock(), &["user-1"], &limits, &costs, Priority::Normal);
/// assert!(take()?.is_ok() && take()?.is_err());
/// // After a minute the bucket equals a fresh one.
/// assert_eq!(app.sweep(store.clock().now() + Span::from_secs(61)), 1);
/// assert!(app.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NamespaceTable {
    pub(super) namespace: Box<str>,
    pub(super) keys_max: usize,
    pub(super) keys: AtomicUsize,
    hasher: Hasher,
    tables: PerProcess<Box<[Mutex<CellTable>]>>,
    /// The records that usage is written to.
    pub(super) records: Arc<RecordTable>,
    /// How long records of usage are kept.
    pub(super) usage_retention: UsageRetention,
    /// True once no cell is made any more. Never reset, and read under the lock of a shard.
    pub(super) closed: AtomicBool,
}

impl NamespaceTable {
    /// The number of keys that a namespace may have in use by default.
    pub const KEYS_MAX: usize = 100_000_000;

    pub(crate) fn new(
        namespace: &str,
        keys_max: usize,
        records: Arc<RecordTable>,
        usage_retention: UsageRetention,
    ) -> NamespaceTable {
        NamespaceTable {
            namespace: namespace.into(),
            keys_max,
            keys: AtomicUsize::new(0),
            hasher: Hasher::default(),
            tables: PerProcess::of(generation().into(), no_cells()),
            records,
            usage_retention,
            closed: AtomicBool::new(false),
        }
    }

    /// Returns the number of keys in the namespace.
    pub fn len(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Returns true if the namespace has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the cell of a key, made if it does not exist, under `limits` from now on.
    ///
    /// # Errors
    ///
    /// [`StoreError::NamespaceFull`] for a new key where there is no room, [`StoreError::NamespaceGone`] for one in a
    /// namespace that was closed.
    pub fn cell(&self, key: &Key, limits: &Limits, now: Tick) -> Result<Arc<BucketCell>, StoreError> {
        self.with(key.as_bytes(), limits, now, Arc::clone)
    }

    /// Returns the cell of a key, if there is one.
    pub fn find(&self, key: &Key) -> Option<Arc<BucketCell>> {
        let hash = self.hash(key.as_bytes());
        self.shard(hash).lock().find(hash, key.as_bytes()).cloned()
    }

    /// Returns whether a cell that was taken from at `taken` may have been dropped since.
    pub(super) fn may_have_dropped(&self, key: &Key, taken: Tick) -> bool {
        self.shard(self.hash(key.as_bytes())).lock().fresh_as_of() >= taken
    }

    /// Drops a cell that was made for a call that was denied or failed, if no other caller has found it since.
    pub(crate) fn drop_unused(&self, key: &Key, now: Tick) {
        let hash = self.hash(key.as_bytes());
        let forgotten = self.shard(hash).lock().drop_unused(hash, key.as_bytes(), now);
        self.keys.fetch_sub(usize::from(forgotten), Ordering::Relaxed);
    }

    /// Drops every bucket that equals a fresh one and that no caller has, after its usage was written down, and returns how many
    /// those were.
    ///
    /// There is no need to call it for new keys to fit: each of them sweeps a little. It frees the memory of a
    /// burst of keys that was not followed by others; whether the allocator gives it back to the system is up to
    /// the allocator.
    pub fn sweep(&self, now: Tick) -> usize {
        let sweep = |shard: &Mutex<CellTable>| {
            let places = shard.lock().places();
            // A few at a time: writing usage takes too long to keep the shard locked for all of them.
            let steps = (0..places).step_by(SWEPT_AT_ONCE).map(|first| SWEPT_AT_ONCE.min(places - first));
            let swept: usize =
                steps.map(|steps| self.sweep_slots(&mut shard.lock(), CellSweep::All, steps, now)).sum();
            shard.lock().shrink(|key| self.hash(key));
            swept
        };
        self.shards().iter().map(sweep).sum()
    }

    /// Calls `use_cell` with the cell at `key` while its shard is locked.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        key: &[u8],
        limits: &Limits,
        now: Tick,
        use_cell: impl FnOnce(&Arc<BucketCell>) -> R,
    ) -> Result<R, StoreError> {
        let hash = self.hash(key);
        let mut table = self.shard(hash).lock();
        if let Some(cell) = table.find(hash, key) {
            return Ok(use_cell(cell));
        }
        self.check_open()?;
        if !self.make_room(&mut table, now) {
            // No two shards are ever locked at once.
            drop(table);
            self.make_room_elsewhere(now)?;
            table = self.shard(hash).lock();
            if let Some(cell) = table.find(hash, key) {
                self.keys.fetch_sub(1, Ordering::Relaxed);
                return Ok(use_cell(cell));
            }
            if let Err(gone) = self.check_open() {
                self.keys.fetch_sub(1, Ordering::Relaxed);
                return Err(gone);
            }
        }
        let cell = BucketCell::new(Key::from_bytes(key), limits.clone(), table.fresh_as_of());
        let result = use_cell(&cell);
        table.insert(hash, cell, |key| self.hash(key));
        Ok(result)
    }

    /// Returns an error if the namespace was closed. The caller has a shard locked, so that nothing is made in it
    /// after that.
    #[cold]
    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(StoreError::NamespaceGone(self.namespace.to_string()));
        }
        Ok(())
    }

    /// Counts a new key, and returns whether there is room for it.
    ///
    /// It stays counted while the sweep looks for room, so that no other caller takes that room.
    #[cold]
    fn make_room(&self, table: &mut CellTable, now: Tick) -> bool {
        let is_full = self.keys.fetch_add(1, Ordering::Relaxed) >= self.keys_max;
        let (which, steps) = if is_full {
            (CellSweep::All, SWEPT_WHEN_FULL)
        } else {
            (CellSweep::Uncounted, SWEPT_PER_INSERT)
        };
        self.sweep_table(table, which, steps, now) > 0 || !is_full
    }

    /// Looks for an idle key in all shards, for a new one that is counted already.
    #[cold]
    fn make_room_elsewhere(&self, now: Tick) -> Result<(), StoreError> {
        let sweep = |shard: &Mutex<CellTable>| {
            self.sweep_table(&mut shard.lock(), CellSweep::All, SWEPT_ELSEWHERE, now)
        };
        let swept = self.shards().iter().any(|shard| sweep(shard) > 0);
        if swept || self.keys.load(Ordering::Relaxed) <= self.keys_max {
            return Ok(());
        }
        self.keys.fetch_sub(1, Ordering::Relaxed);
        Err(StoreError::NamespaceFull { namespace: self.namespace.to_string(), keys_max: self.keys_max })
    }

    /// Sweeps the next slots of a table, and returns how many keys were dropped.
    fn sweep_table(&self, table: &mut CellTable, which: CellSweep, steps: usize, now: Tick) -> usize {
        let swept = self.sweep_slots(table, which, steps, now);
        table.shrink(|key| self.hash(key));
        swept
    }

    /// As [`sweep_table`](NamespaceTable::sweep_table), and every slot stays where it is.
    fn sweep_slots(&self, table: &mut CellTable, which: CellSweep, steps: usize, now: Tick) -> usize {
        let swept = table.sweep(which, steps, now, |cell| self.flush(cell));
        self.keys.fetch_sub(swept, Ordering::Relaxed);
        swept
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    #[inline]
    pub(super) fn shard(&self, hash: u64) -> &Mutex<CellTable> {
        &self.shards()[shard_of(hash)]
    }

    /// Returns the cells by key, as this process has them.
    #[inline]
    pub(super) fn shards(&self) -> &[Mutex<CellTable>] {
        self.tables.get_or(generation().into(), |parent| self.of_a_fork(parent))
    }

    /// Returns the cells of a forked process, copied from its parent. A shard that a thread of the parent had locked at
    /// that instant is lost: its buckets begin as fresh ones.
    fn of_a_fork(&self, parent: &[Mutex<CellTable>]) -> Box<[Mutex<CellTable>]> {
        let of_a_fork = |shard: &Mutex<CellTable>| match shard.try_lock() {
            Some(table) => table.of_a_fork(|key| self.hash(key)),
            None => CellTable::default(),
        };
        let tables: Vec<CellTable> = parent.iter().map(of_a_fork).collect();
        self.keys.store(tables.iter().map(|table| table.iter().count()).sum(), Ordering::Relaxed);
        tables.into_iter().map(Mutex::new).collect()
    }
}

fn no_cells() -> Box<[Mutex<CellTable>]> {
    (0..SHARDS).map(|_| Mutex::new(CellTable::default())).collect()
}

/// Returns the shard of a hash. The table uses the low bits of the hash for the slot and the top seven for the tag, so
/// bits in between choose the shard.
#[inline]
pub(super) fn shard_of(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}
