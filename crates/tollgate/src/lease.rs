//! The lease: what an admitted caller holds.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tollgate_core::{Costs, Demand, Kind, Name, Row, Tick, Usage};
use tollgate_store::{Reply, Term};

use crate::{Event, LimitSet, ReleaseError, SettleError};

/// What a set says about itself: region, account, endpoint, tier.
pub type Config = BTreeMap<String, String>;

/// What happens to a lease that is dropped without a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrop {
    /// What was reserved stays charged: the call may well have been made. Resources are free.
    #[default]
    Keep,
    /// Everything is given back.
    Refund,
}

/// What an admitted caller holds, until it settles, releases or drops it. Whatever it does, it counts once.
///
/// A lease borrows its set; [`into_owned`](Lease::into_owned) makes one that can be sent anywhere.
///
/// ```
/// use tollgate::{demand, Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::per_minute("tpm", 1_000), Limit::resource("connections", 2)])?;
/// let lease = set.acquire(demand! { tpm: 400 }).wait()?;
/// assert_eq!(set.peek().limit("connections").unwrap().available(), 1);
/// lease.settle(demand! { tpm: 150 }).wait()?;
/// assert_eq!(set.peek().limit("connections").unwrap().available(), 2);
/// assert_eq!(set.peek().limit("tpm").unwrap().available(), 850);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a lease that is dropped at once frees its resources and keeps the rest charged"]
pub struct Lease<'a> {
    set: Held<'a>,
    at: Tick,
    costs: Costs,
    term: Option<Term>,
    waited: Option<Duration>,
    reported: Option<Box<Used>>,
    is_open: bool,
}

enum Held<'a> {
    Borrowed(&'a LimitSet),
    Owned(LimitSet),
}

/// What was used of each limit: as reserved, unless it was reported.
#[derive(Clone)]
struct Used {
    amounts: Row<u64>,
    reported: u64,
}

impl<'a> Lease<'a> {
    #[inline]
    pub(crate) fn new(
        set: &'a LimitSet,
        at: Tick,
        costs: Costs,
        term: Option<Term>,
        waited: Option<Duration>,
    ) -> Lease<'a> {
        Lease { set: Held::Borrowed(set), at, costs, term, waited, reported: None, is_open: true }
    }

    /// The set it was taken from.
    #[inline]
    pub fn set(&self) -> &LimitSet {
        match &self.set {
            Held::Borrowed(set) => set,
            Held::Owned(set) => set,
        }
    }

    /// What the set says about itself: which account or region to use, say.
    pub fn config(&self) -> &Config {
        self.set().config()
    }

    /// How long was waited for it, if at all.
    pub fn waited(&self) -> Option<Duration> {
        self.waited
    }

    /// What was taken of the limit with this name; `None` if nothing was.
    pub fn reserved(&self, limit: &str) -> Option<u64> {
        let index = self.set().names().index(limit)?;
        self.costs.takes(index).then(|| self.costs.amount(index))
    }

    /// The same lease, free of the borrow, to be sent to another thread or task.
    pub fn into_owned(mut self) -> Lease<'static> {
        let owned = Lease {
            set: Held::Owned(self.set().clone()),
            at: self.at,
            costs: self.costs.clone(),
            term: self.term,
            waited: self.waited,
            reported: self.reported.take(),
            is_open: self.is_open,
        };
        self.is_open = false;
        owned
    }

    /// Notes what was used, to count when the lease ends. The last word on a limit counts.
    ///
    /// # Errors
    ///
    /// [`SettleError`] if the report is not valid; what is valid in it is noted all the same.
    pub fn report(&mut self, usage: Demand<'_>) -> Result<(), SettleError> {
        let mut used = self.reported.take().map_or_else(|| self.as_reserved(), |used| *used);
        let result = self.note(&mut used, &usage);
        self.reported = Some(Box::new(used));
        result
    }

    /// Ends the lease with what was really used. Less than taken is given back, more becomes debt, and what is
    /// not named counts as it was taken or [reported](Lease::report).
    ///
    /// # Cancel safety
    ///
    /// In memory it has happened when this returns, awaited or not.
    ///
    /// # Errors
    ///
    /// [`SettleError`] if the report is not valid. The lease has ended all the same.
    pub fn settle(mut self, usage: Demand<'_>) -> Reply<'static, Result<(), SettleError>> {
        let mut used = self.reported.take().map_or_else(|| self.as_reserved(), |used| *used);
        let result = self.note(&mut used, &usage);
        self.end(&used.amounts);
        Reply::ready(result)
    }

    /// Ends the lease with what was [reported](Lease::report).
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Unreported`] names the rates that wanted a report and got none. The lease has ended, and
    /// they stay charged as they were taken.
    pub fn release(mut self) -> Reply<'static, Result<(), ReleaseError>> {
        let used = self.reported.take().map_or_else(|| self.as_reserved(), |used| *used);
        let missing = self.unreported(&used);
        self.end(&used.amounts);
        Reply::ready(if missing.is_empty() { Ok(()) } else { Err(ReleaseError::Unreported(missing)) })
    }

    /// Ends the lease as if nothing had been taken: for calls that were never made.
    pub fn cancel(mut self) -> Reply<'static, ()> {
        self.end(&Row::new(self.costs.len()));
        Reply::ready(())
    }

    /// Says that the holder is alive, and keeps its resources for another [`lease_ttl`].
    ///
    /// `false` if they had expired: they may be somebody else's now. Without a `lease_ttl` nothing expires.
    ///
    /// [`lease_ttl`]: crate::LimitSetBuilder::lease_ttl
    pub fn heartbeat(&self) -> Reply<'_, bool> {
        let Some(term) = self.term else { return Reply::ready(true) };
        let alive = self.set().cell().renew(self.set().clock(), term);
        if !alive {
            self.set().reporter().report(&Event::ExpiredLease);
        }
        Reply::ready(alive)
    }

    #[inline]
    fn as_reserved(&self) -> Used {
        Used { amounts: Row::from_fn(self.costs.len(), |index| self.costs.amount(index)), reported: 0 }
    }

    #[inline]
    fn note(&self, used: &mut Used, usage: &Demand<'_>) -> Result<(), SettleError> {
        let set = self.set();
        let mut result = usage.check().map_err(SettleError::from);
        for (name, amount) in usage.parts() {
            match set.names().index(name).filter(|index| self.costs.takes(*index)) {
                Some(index) => result = result.and(self.note_one(used, index, *amount)),
                None => result = result.and(set.skip_unknown(name).map_err(SettleError::from)),
            }
        }
        result
    }

    #[inline]
    fn note_one(&self, used: &mut Used, index: usize, amount: u64) -> Result<(), SettleError> {
        let (limit, reserved) = (&self.set().names()[index], self.costs.amount(index));
        if matches!(limit.kind(), Kind::Calls(_)) && amount > reserved {
            return Err(SettleError::TooManyCalls { limit: limit.name().clone(), used: amount, reserved });
        }
        used.amounts[index] = amount;
        used.reported |= 1 << index;
        Ok(())
    }

    fn unreported(&self, used: &Used) -> Vec<Name> {
        let wants = |index: &usize| {
            let limit = &self.set().names()[*index];
            self.costs.is_explicit(*index) && !limit.is_resource() && used.reported >> index & 1 == 0
        };
        let missing = (0..self.costs.len()).filter(wants);
        missing.map(|index| self.set().names()[index].name().clone()).collect()
    }

    #[inline]
    fn end(&mut self, used: &[u64]) {
        // Whatever happens next, the lease has ended: dropping it must not end it again.
        self.is_open = false;
        if used == self.costs.amounts() && !self.set().names().have_resources() {
            return;
        }
        let holder = self.term.map(|term| term.holder);
        let usage = Usage { at: self.at, reserved: &self.costs, used, holder };
        let set = self.set();
        let settlement = set.cell().settle(set.clock(), set.names(), &usage);
        if settlement.refunded | settlement.over_used != 0 {
            self.tell(used);
        }
    }

    fn tell(&self, used: &[u64]) {
        let set = self.set();
        for (index, limit) in set.names().iter().enumerate().filter(|(_, limit)| !limit.is_resource()) {
            let (reserved, used, limit) = (self.costs.amount(index), used[index], limit.name());
            if used < reserved {
                set.reporter().report(&Event::Refunded { limit, amount: reserved - used });
            } else if used > reserved {
                set.reporter().report(&Event::OverUsed { limit, amount: used - reserved });
            }
        }
    }
}

impl Drop for Lease<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let used = match (self.reported.take(), self.set().on_drop()) {
            (Some(used), _) => used.amounts,
            (None, OnDrop::Keep) => self.as_reserved().amounts,
            (None, OnDrop::Refund) => Row::new(self.costs.len()),
        };
        self.end(&used);
    }
}

/// Without the values of the config, which may be secret.
impl fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.set().names().iter().map(|limit| limit.name());
        let taken: Vec<_> = names.zip(self.costs.amounts()).collect();
        f.debug_struct("Lease").field("taken", &taken).field("waited", &self.waited).finish_non_exhaustive()
    }
}
