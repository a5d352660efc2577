//! A transaction of the file: every bucket is read once and written once, however many calls use it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::Connection;
use tollgate_store::txn::MeteredBucket;
use tollgate_store::usage::UsageRetention;
use tollgate_store::{BucketRef, Freed, Key};

use crate::clock::FileClock;
use crate::error::{Abort, TxnError};
use crate::limits::FileLimitsCache;
use crate::rows;
use crate::sweep::SweepState;

pub(crate) type BucketId = (Box<str>, Key);

/// A write transaction. Nothing of it is visible to others before it is committed.
pub(crate) struct WriteTxn<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a mut FileClock,
    pub(crate) known: &'a mut FileLimitsCache,
    pub(crate) sweep: &'a mut SweepState,
    /// How long records of usage are kept.
    pub(crate) usage_retention: &'a UsageRetention,
    seen: HashMap<BucketId, CachedRow>,
    /// Limits that have more room once it is committed.
    pub(crate) freed: Vec<Freed>,
}

struct CachedRow {
    row: Option<MeteredBucket>,
    is_new: bool,
    is_changed: bool,
}

impl<'a> WriteTxn<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        clock: &'a mut FileClock,
        known: &'a mut FileLimitsCache,
        sweep: &'a mut SweepState,
        usage_retention: &'a UsageRetention,
    ) -> WriteTxn<'a> {
        WriteTxn { connection, clock, known, sweep, usage_retention, seen: HashMap::new(), freed: Vec::new() }
    }

    /// Returns a bucket, if it exists.
    pub(crate) fn row(&mut self, place: &BucketRef<'_>) -> Result<Option<&MeteredBucket>, Abort> {
        let seen = match self.seen.entry((place.namespace.into(), place.key.clone())) {
            Entry::Occupied(seen) => seen.into_mut(),
            Entry::Vacant(vacant) => {
                let row = match rows::get(self.connection, place.namespace, place.key)? {
                    Some(raw) => Some(raw.decode(self.connection, self.known, Some(place.limits))?),
                    None => None,
                };
                vacant.insert(CachedRow { is_new: row.is_none(), row, is_changed: false })
            }
        };
        Ok(seen.row.as_ref())
    }

    /// Sets a bucket, after it was looked up.
    pub(crate) fn put_row(&mut self, address: BucketId, row: MeteredBucket) {
        let is_new = self.seen.get(&address).is_none_or(|seen| seen.is_new);
        self.seen.insert(address, CachedRow { row: Some(row), is_new, is_changed: true });
    }

    /// Writes all changed buckets to the file, and clears the cache.
    pub(crate) fn flush(&mut self) -> Result<(), TxnError> {
        for ((namespace, key), seen) in self.seen.drain() {
            let Some(row) = seen.row.filter(|_| seen.is_changed) else { continue };
            rows::put(self.connection, self.known, (&namespace, &key), &row)?;
            self.sweep.buckets_made += usize::from(seen.is_new);
        }
        Ok(())
    }

    /// Writes all changed buckets, and returns a view to read with.
    pub(crate) fn view(&mut self) -> Result<ReadView<'_>, TxnError> {
        self.flush()?;
        Ok(ReadView {
            connection: self.connection,
            clock: self.clock,
            known: self.known,
            usage_retention: self.usage_retention,
        })
    }
}

/// A view of the file for jobs that read.
pub(crate) struct ReadView<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a mut FileClock,
    pub(crate) known: &'a mut FileLimitsCache,
    pub(crate) usage_retention: &'a UsageRetention,
}

impl ReadView<'_> {
    /// Returns a bucket, if it exists.
    pub(crate) fn row(&mut self, place: &BucketRef<'_>) -> Result<Option<MeteredBucket>, Abort> {
        match rows::get(self.connection, place.namespace, place.key)? {
            Some(raw) => raw.decode(self.connection, self.known, Some(place.limits)).map(Some),
            None => Ok(None),
        }
    }
}
