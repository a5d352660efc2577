//! Records in memory: ordered maps behind one lock.

mod range;
mod rows;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate_core::Tick;

use crate::records::{self, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write};
use crate::sync::{Mutex, MutexGuard};
use crate::usage::bucket_of_usage;
use crate::{Key, Memory, PerProcess, Reply, generation};

use rows::Rows;

pub(crate) struct RecordTable {
    rows: PerProcess<Mutex<Rows>>,
    revision: AtomicU64,
}

impl Default for RecordTable {
    fn default() -> RecordTable {
        RecordTable { rows: PerProcess::new(generation().into()), revision: AtomicU64::new(0) }
    }
}

/// The records while their lock is held, so that buckets can change together with them.
pub(crate) struct LockedRecords<'a> {
    rows: MutexGuard<'a, Rows>,
    revision: &'a AtomicU64,
}

impl RecordTable {
    /// Returns the records, as this process has them. Those of its parent are copied; if a thread had them locked at
    /// the fork there are none, and a limiter reports that its namespace is gone.
    fn rows(&self) -> &Mutex<Rows> {
        self.rows.get_or(generation().into(), |parent| {
            Mutex::new(parent.try_lock().map(|rows| rows.clone()).unwrap_or_default())
        })
    }

    pub(crate) fn lock(&self, now: Tick) -> LockedRecords<'_> {
        let mut rows = self.rows().lock();
        rows.now = now;
        LockedRecords { rows, revision: &self.revision }
    }

    /// Locks the records to write usage.
    pub(crate) fn lock_for_usage(&self) -> LockedRecords<'_> {
        LockedRecords { rows: self.rows().lock(), revision: &self.revision }
    }

    /// Writes records of a namespace, unless it is closed by then: a purge finds what is written before the namespace
    /// is closed.
    pub(crate) fn write_unless(&self, is_closed: &AtomicBool, writes: &[Write]) {
        let mut rows = self.rows().lock();
        if !is_closed.load(Ordering::Relaxed) {
            rows.make(writes);
        }
    }

    /// Waits for a thread that is writing, and may not have seen that a namespace was closed.
    pub(crate) fn wait_for_writer(&self) {
        drop(self.rows().lock());
    }
}

impl LockedRecords<'_> {
    /// Returns the record at a key, if it exists and has not expired.
    pub(crate) fn get(&self, key: &ItemKey) -> Option<Item> {
        self.rows.get(key)
    }

    /// Returns the error of the first write whose test fails.
    pub(crate) fn test(&self, writes: &[Write]) -> Result<(), RecordsError> {
        self.rows.failing(writes).map_or(Ok(()), |index| Err(RecordsError::Failed(index)))
    }

    /// Makes writes of usage, which do not invalidate caches.
    pub(crate) fn make_usage(&mut self, writes: &[Write]) {
        self.rows.make(writes);
    }

    /// Makes writes that were tested under the same lock.
    pub(crate) fn make(&mut self, writes: &[Write]) {
        self.rows.make(writes);
        // Still under the lock: a reader that has read the new number reads what was written.
        self.revision.fetch_add(1, Ordering::Release);
    }
}

impl Memory {
    fn write_records(&self, writes: &[Write]) -> Result<(), RecordsError> {
        records::check_writes(writes)?;
        let mut records = self.records.lock(self.clock.now());
        records.test(writes)?;
        records.make(writes);
        Ok(())
    }

    /// Returns the records of usage at these keys, each with what its cell has counted.
    pub(super) fn usage_records(&self, keys: &[ItemKey]) -> Vec<Option<Item>> {
        let record = |key: &ItemKey| {
            let cell = bucket_of_usage(key).and_then(|(namespace, entity, resource)| {
                self.namespace(namespace).find(&Key::new(&[entity, resource]))
            });
            // Both are locked, because sums move to the records under both locks.
            let records = self.records.lock(self.clock.now());
            let there = records.get(key);
            match cell.as_ref().map(|cell| cell.lock()).as_ref().and_then(|inner| inner.usage.as_ref()) {
                Some(sums) => sums.added_to(key, there, &self.usage_retention),
                None => there,
            }
        };
        keys.iter().map(record).collect()
    }

    fn get_records(&self, keys: &[ItemKey]) -> Result<Vec<Option<Item>>, RecordsError> {
        records::check_keys(keys)?;
        let records = self.records.lock(self.clock.now());
        Ok(keys.iter().map(|key| records.rows.get(key)).collect())
    }
}

impl Records for Memory {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        Reply::ready(self.get_records(keys))
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        Reply::ready(self.write_records(writes))
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        let records = self.records.lock(self.clock.now());
        Reply::ready(records.rows.query(query).map_err(RecordsError::from))
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        let records = self.records.lock(self.clock.now());
        Reply::ready(records.rows.find(index, query).map_err(RecordsError::from))
    }

    fn revision(&self) -> Option<u64> {
        Some(self.records.revision.load(Ordering::Acquire))
    }
}
