//! Usage in a cell: counted under the lock that guards its bucket, so that a metered take locks once.

use tollgate_core::{Limits, Tick};

use crate::locked::LockedBucket;
use crate::usage::{Caller, Sums};

impl LockedBucket {
    /// Counts usage at `at`, if what was counted before is of the same hour, limits and callers. `false`, with nothing
    /// counted, if not.
    #[inline]
    pub(crate) fn count(
        &mut self,
        at: Tick,
        limits: &Limits,
        caller: Caller,
        add: impl FnOnce(&mut Sums),
    ) -> bool {
        match &mut self.usage {
            Some(sums) if sums.covers(limits, at, caller) => {
                add(sums);
                true
            }
            _ => false,
        }
    }

    /// Makes the sums that usage at `at` is counted in. `false`, with nothing changed, if those that are there have to be
    /// [turned](LockedBucket::roll_over_sums) first.
    pub(crate) fn open_sums(&mut self, at: Tick, limits: &Limits, caller: Caller) -> bool {
        let sums = self.usage.get_or_insert_with(|| Box::new(Sums::new(limits, at, caller)));
        sums.covers(limits, at, caller) || sums.adopt(limits, at, caller)
    }

    /// As [`open_sums`](LockedBucket::open_sums), and returns sums of another hour, of other limits or of other callers, which
    /// the caller writes to the records under the same lock.
    pub(crate) fn roll_over_sums(&mut self, at: Tick, limits: &Limits, caller: Caller) -> Option<Sums> {
        if self.is_removed() || self.open_sums(at, limits, caller) {
            return None;
        }
        self.usage.as_mut().map(|sums| sums.roll_over(limits, at, caller))
    }

    /// Returns the hour that was counted and how many takes there were, if there is usage to write.
    pub(crate) fn unwritten(&self) -> Option<(Tick, u64)> {
        let sums = self.usage.as_ref().filter(|sums| !sums.is_empty())?;
        Some((sums.starts(), sums.events().into()))
    }

    /// Returns whether there are sums of another hour than that of `now`.
    pub(crate) fn has_old_sums(&self, now: Tick) -> bool {
        self.usage.as_ref().is_some_and(|sums| !sums.is_of_hour(now))
    }
}
