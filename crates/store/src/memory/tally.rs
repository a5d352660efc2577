//! Tallies: the usage of a bucket, counted beside its cell.

use std::sync::Arc;

use tollgate_core::{Limits, Tick};

use super::NamespaceTable;
use crate::records::{Item, ItemKey};
use crate::sync::Mutex;
use crate::usage::{Caller, Sums, UsageRetention, Used};
use crate::{Key, LocalBucket};

/// The usage of one bucket in the current hour that is not yet in the records.
///
/// Apart from the cell, because most cells are not metered and stay small.
// Hidden: a `LocalBucket` counts in it, and no caller uses it otherwise.
#[doc(hidden)]
pub struct Tally {
    key: Key,
    /// `None` once the bucket was forgotten: what is counted after that belongs to no bucket.
    sums: Mutex<Option<Sums>>,
}

impl Tally {
    pub(super) fn new(key: Key, limits: &Limits, at: Tick) -> Arc<Tally> {
        Arc::new(Tally { key, sums: Mutex::new(Some(Sums::new(limits, at, Caller::Own))) })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    #[inline]
    fn count(
        &self,
        space: &NamespaceTable,
        at: Tick,
        limits: &Limits,
        caller: Caller,
        add: impl FnOnce(&mut Sums),
    ) {
        let mut sums = self.sums.lock();
        let Some(sums) = &mut *sums else { return };
        if !sums.covers(limits, at, caller) {
            self.roll_over(sums, space, limits, at, caller);
        }
        add(sums);
    }

    /// Starts sums of another hour, of other limits or of other callers. The sums before go to the records before the
    /// lock is free: a caller that reads usage finds them in one of the two.
    #[cold]
    fn roll_over(&self, sums: &mut Sums, space: &NamespaceTable, limits: &Limits, at: Tick, caller: Caller) {
        if !sums.adopt(limits, at, caller) {
            let before = sums.roll_over(limits, at, caller);
            space.write_sums(&self.key, &before);
        }
    }

    /// Counts what a step used.
    #[inline]
    pub(super) fn count_used(&self, space: &NamespaceTable, at: Tick, limits: &Limits, used: &Used<'_>) {
        self.count(space, at, limits, used.caller(), |sums| used.add(sums));
    }

    /// Writes what was counted to the records.
    pub(super) fn flush(&self, space: &NamespaceTable) {
        if let Some(sums) = &mut *self.sums.lock() {
            space.write_sums(&self.key, sums);
            sums.clear();
        }
    }

    /// Returns a record of usage of the bucket with what was counted added, as of one instant.
    pub(super) fn added_to(
        &self,
        key: &ItemKey,
        retention: &UsageRetention,
        read: impl FnOnce() -> Option<Item>,
    ) -> Option<Item> {
        // Still locked while the record is read: sums move to the records under this lock.
        let sums = self.sums.lock();
        let there = read();
        match &*sums {
            Some(sums) => sums.added_to(key, there, retention),
            None => there,
        }
    }

    /// Returns the hour that was counted and how many takes there were, if there is anything to write.
    pub(super) fn unwritten(&self) -> Option<(Tick, u64)> {
        let sums = self.sums.lock();
        sums.as_ref().filter(|sums| !sums.is_empty()).map(|sums| (sums.starts(), sums.events().into()))
    }

    /// Forgets what was counted, and counts nothing from now on.
    pub(super) fn remove(&self) {
        *self.sums.lock() = None;
    }

    /// Returns whether it is of an earlier hour than that of `now`, and whether it has anything to write.
    pub(super) fn is_old(&self, now: Tick) -> (bool, bool) {
        let sums = self.sums.lock();
        let is_old = sums.as_ref().is_none_or(|sums| !sums.is_of_hour(now));
        (is_old, sums.as_ref().is_some_and(|sums| !sums.is_empty()))
    }
}

impl LocalBucket {
    /// Counts what a call took of the bucket at `at`: so much of each limit.
    #[inline]
    pub fn count_take(&self, at: Tick, limits: &Limits, caller: Caller, amounts: &[u64]) {
        self.tally.count(&self.space, at, limits, caller, |sums| sums.add_amounts(amounts));
    }

    /// Counts what a settlement changes: so much of each limit was reserved, and so much used.
    #[inline]
    pub fn count_settlement(
        &self,
        now: Tick,
        limits: &Limits,
        caller: Caller,
        reserved: &[u64],
        used: &[u64],
    ) {
        self.tally.count(&self.space, now, limits, caller, |sums| sums.add_difference(reserved, used));
    }
}
