//! A transaction in the making: every bucket is read once and written once, however many calls are about it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::Connection;
use tollgate_store::usage::UsageRetention;
use tollgate_store::{Freed, Key, Place};

use crate::clock::FileClock;
use crate::error::{Fault, Stop};
use crate::limits::KnownLimits;
use crate::rows::{self, Row};
use crate::sweep::Sweep;

pub(crate) type Address = (Box<str>, Key);

/// What work that writes is given. Nothing of it holds before the transaction is committed.
pub(crate) struct Batch<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a mut FileClock,
    pub(crate) known: &'a mut KnownLimits,
    pub(crate) sweep: &'a mut Sweep,
    /// How long usage is kept that is written down.
    pub(crate) usage_retention: &'a UsageRetention,
    seen: HashMap<Address, Seen>,
    /// Limits that have more room once it is committed.
    pub(crate) freed: Vec<Freed>,
}

struct Seen {
    row: Option<Row>,
    is_new: bool,
    is_changed: bool,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        clock: &'a mut FileClock,
        known: &'a mut KnownLimits,
        sweep: &'a mut Sweep,
        usage_retention: &'a UsageRetention,
    ) -> Batch<'a> {
        Batch { connection, clock, known, sweep, usage_retention, seen: HashMap::new(), freed: Vec::new() }
    }

    /// The bucket at a place, if there is one.
    pub(crate) fn row(&mut self, place: &Place<'_>) -> Result<Option<&Row>, Stop> {
        let seen = match self.seen.entry((place.namespace.into(), place.key.clone())) {
            Entry::Occupied(seen) => seen.into_mut(),
            Entry::Vacant(vacant) => {
                let row = match rows::get(self.connection, place.namespace, place.key)? {
                    Some(raw) => Some(raw.decode(self.connection, self.known, Some(place.limits))?),
                    None => None,
                };
                vacant.insert(Seen { is_new: row.is_none(), row, is_changed: false })
            }
        };
        Ok(seen.row.as_ref())
    }

    /// Puts a bucket in place, after it was looked for.
    pub(crate) fn put(&mut self, address: Address, row: Row) {
        let is_new = self.seen.get(&address).is_none_or(|seen| seen.is_new);
        self.seen.insert(address, Seen { row: Some(row), is_new, is_changed: true });
    }

    /// Writes all buckets that changed, and forgets what it has seen: from now on the file says it.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        for ((namespace, key), seen) in self.seen.drain() {
            let Some(row) = seen.row.filter(|_| seen.is_changed) else { continue };
            rows::put(self.connection, self.known, (&namespace, &key), &row)?;
            self.sweep.buckets_made += usize::from(seen.is_new);
        }
        Ok(())
    }

    /// What work that only reads is given, once all that changed was written.
    pub(crate) fn view(&mut self) -> Result<View<'_>, Fault> {
        self.flush()?;
        Ok(View {
            connection: self.connection,
            clock: self.clock,
            known: self.known,
            usage_retention: self.usage_retention,
        })
    }
}

/// What work that reads is given.
pub(crate) struct View<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a mut FileClock,
    pub(crate) known: &'a mut KnownLimits,
    pub(crate) usage_retention: &'a UsageRetention,
}

impl View<'_> {
    /// The bucket at a place, if there is one.
    pub(crate) fn row(&mut self, place: &Place<'_>) -> Result<Option<Row>, Stop> {
        match rows::get(self.connection, place.namespace, place.key)? {
            Some(raw) => raw.decode(self.connection, self.known, Some(place.limits)).map(Some),
            None => Ok(None),
        }
    }
}
