//! A transaction in the making: every bucket is read once and written once, however many calls are about it.

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

/// What work that writes is given. Nothing of it holds before the transaction is committed.
pub(crate) struct WriteTxn<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a mut FileClock,
    pub(crate) known: &'a mut FileLimitsCache,
    pub(crate) sweep: &'a mut SweepState,
    /// How long usage is kept that is written down.
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

    /// The bucket at a place, if there is one.
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

    /// Puts a bucket in place, after it was looked for.
    pub(crate) fn put_row(&mut self, address: BucketId, row: MeteredBucket) {
        let is_new = self.seen.get(&address).is_none_or(|seen| seen.is_new);
        self.seen.insert(address, CachedRow { row: Some(row), is_new, is_changed: true });
    }

    /// Writes all buckets that changed, and forgets what it has seen: from now on the file says it.
    pub(crate) fn flush(&mut self) -> Result<(), TxnError> {
        for ((namespace, key), seen) in self.seen.drain() {
            let Some(row) = seen.row.filter(|_| seen.is_changed) else { continue };
            rows::put(self.connection, self.known, (&namespace, &key), &row)?;
            self.sweep.buckets_made += usize::from(seen.is_new);
        }
        Ok(())
    }

    /// What work that only reads is given, once all that changed was written.
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

/// What work that reads is given.
pub(crate) struct ReadView<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a mut FileClock,
    pub(crate) known: &'a mut FileLimitsCache,
    pub(crate) usage_retention: &'a UsageRetention,
}

impl ReadView<'_> {
    /// The bucket at a place, if there is one.
    pub(crate) fn row(&mut self, place: &BucketRef<'_>) -> Result<Option<MeteredBucket>, Abort> {
        match rows::get(self.connection, place.namespace, place.key)? {
            Some(raw) => raw.decode(self.connection, self.known, Some(place.limits)).map(Some),
            None => Ok(None),
        }
    }
}
