//! A bucket of this process at hand: taken from, settled and counted with no call to the store in between.

use std::sync::Arc;

use tollgate_core::{Limits, Packed, SmallCosts, Tick};

use crate::usage::Caller;
use crate::{BucketCell, Key, NamespaceTable};

/// A bucket in this process, with the namespace that its usage is written down in.
// Hidden: the fast path of sibling crates.
#[doc(hidden)]
#[derive(Clone)]
pub struct LocalBucket {
    /// The bucket.
    pub cell: Arc<BucketCell>,
    pub(crate) space: Arc<NamespaceTable>,
}

impl LocalBucket {
    /// Returns the key of the bucket.
    pub fn key(&self) -> &Key {
        self.cell.key()
    }

    /// Takes and counts `costs` if no caller waits, these very limits are in force, which the costs are counted in, the bucket
    /// is plain and they fit, which is the common case; otherwise does nothing.
    #[inline]
    pub fn take_plain(&self, now: Tick, limits: &Limits, caller: Caller, costs: &SmallCosts) -> Option<Tick> {
        let amounts = &costs.amounts()[..limits.len()];
        let mut inner = self.cell.lock();
        let at = inner.take_plain_under(now, limits, costs)?;
        // Counted under the same lock: a second one would take as long as all else (bench row `limiter/acquire-settle-2-limits`).
        let is_counted = inner.count(at, limits, caller, |sums| sums.add_amounts(amounts));
        drop(inner);
        if !is_counted {
            self.count_take(at, limits, caller, amounts);
        }
        Some(at)
    }

    /// Settles and counts what was taken packed with what was used of it, at `now`, if no caller waits, these very limits are in
    /// force and nothing is over-used. `false`, with nothing changed, if not.
    #[inline]
    pub fn settle_packed(
        &self,
        now: Tick,
        limits: &Limits,
        caller: Caller,
        packed: &Packed,
        used: &[u64; 4],
    ) -> bool {
        let reserved = packed.amounts();
        let (reserved, used_of_limits) = (&reserved[..limits.len()], &used[..limits.len()]);
        let mut inner = self.cell.lock();
        if !inner.settle_packed(limits, packed, used) {
            return false;
        }
        let is_counted =
            inner.count(now, limits, caller, |sums| sums.add_difference(reserved, used_of_limits));
        drop(inner);
        if !is_counted {
            self.count_settlement(now, limits, caller, reserved, used_of_limits);
        }
        true
    }

    /// Counts what a call took of the bucket at `at`: so much of each limit.
    #[cold]
    pub fn count_take(&self, at: Tick, limits: &Limits, caller: Caller, amounts: &[u64]) {
        self.space.count(&self.cell, at, limits, caller, |sums| sums.add_amounts(amounts));
    }

    /// Counts what a settlement changes: so much of each limit was reserved, and so much used.
    #[cold]
    pub fn count_settlement(
        &self,
        now: Tick,
        limits: &Limits,
        caller: Caller,
        reserved: &[u64],
        used: &[u64],
    ) {
        self.space.count(&self.cell, now, limits, caller, |sums| sums.add_difference(reserved, used));
    }
}
