//! The lease: what an admitted caller holds.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate_core::{AsDemand, Costs, DemandError, Kind, Name, Packed, Row, Span, Tick, Usage};
use tollgate_store::Reply;

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
    taken: Packed,
    /// What only some leases have: kept apart, because moving a lease about costs more than taking it.
    extra: Option<Box<Extra>>,
    is_open: bool,
}

#[derive(Default)]
struct Extra {
    /// What was taken, if it could not be packed.
    costs: Option<Costs>,
    /// The holder of the resources, if they can expire.
    holder: Option<NonZeroU64>,
    waited: Option<Span>,
    reported: Option<Used>,
    /// Whether it was told that the resources have expired.
    told_expired: AtomicBool,
}

enum Held<'a> {
    Borrowed(&'a LimitSet),
    Owned(LimitSet),
}

/// What was used of each limit: as reserved, unless it was reported.
#[derive(Clone)]
struct Used {
    amounts: Row<u64>,
    reported: u32,
}

impl<'a> Lease<'a> {
    #[inline(always)]
    pub(crate) fn new(set: &'a LimitSet, at: Tick, costs: &Costs) -> Lease<'a> {
        let lease = |taken| Lease { set: Held::Borrowed(set), at, taken, extra: None, is_open: true };
        match costs.pack() {
            Some(packed) => lease(packed),
            None => {
                let mut lease = lease(Packed::default());
                lease.extra().costs = Some(costs.clone());
                lease
            }
        }
    }

    /// With who holds its resources, and how long was waited for it.
    #[inline]
    pub(crate) fn with(mut self, holder: Option<NonZeroU64>, waited: Option<Duration>) -> Lease<'a> {
        if holder.is_some() || waited.is_some() {
            let extra = self.extra();
            extra.holder = holder;
            extra.waited = waited.map(Span::covering);
        }
        self
    }

    #[inline]
    fn costs(&self) -> Costs {
        match self.extra.as_ref().and_then(|extra| extra.costs.as_ref()) {
            Some(costs) => costs.clone(),
            None => Costs::unpack(&self.taken, self.set().names().len()),
        }
    }

    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    #[inline]
    fn holder(&self) -> Option<NonZeroU64> {
        self.extra.as_ref()?.holder
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
        self.extra.as_ref()?.waited.map(Span::to_duration)
    }

    /// What was taken of the limit with this name; `None` if nothing was.
    pub fn reserved(&self, limit: &str) -> Option<u64> {
        let (index, costs) = (self.set().names().index(limit)?, self.costs());
        costs.takes(index).then(|| costs.amount(index))
    }

    /// The same lease, free of the borrow, to be sent to another thread or task.
    pub fn into_owned(mut self) -> Lease<'static> {
        let owned = Lease {
            set: Held::Owned(self.set().clone()),
            at: self.at,
            taken: self.taken,
            extra: self.extra.take(),
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
    pub fn report(&mut self, usage: impl AsDemand) -> Result<(), SettleError> {
        let costs = self.costs();
        let mut used = self.used_so_far(&costs);
        let result = self.note(&costs, &mut used, &usage);
        self.extra().reported = Some(used);
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
    #[inline]
    pub fn settle(mut self, usage: impl AsDemand) -> Reply<'static, Result<(), SettleError>> {
        let costs = self.costs();
        let mut used = self.used_so_far(&costs);
        let result = self.note(&costs, &mut used, &usage);
        self.end(&costs, &used.amounts);
        Reply::ready(result)
    }

    /// Ends the lease with what was [reported](Lease::report).
    ///
    /// # Errors
    ///
    /// [`ReleaseError::Unreported`] names the rates that wanted a report and got none. The lease has ended, and
    /// they stay charged as they were taken.
    pub fn release(mut self) -> Reply<'static, Result<(), ReleaseError>> {
        let costs = self.costs();
        let used = self.used_so_far(&costs);
        let missing = self.unreported(&costs, &used);
        self.end(&costs, &used.amounts);
        Reply::ready(if missing.is_empty() { Ok(()) } else { Err(ReleaseError::Unreported(missing)) })
    }

    /// Ends the lease as if nothing had been taken: for calls that were never made.
    pub fn cancel(mut self) -> Reply<'static, ()> {
        let costs = self.costs();
        self.end(&costs, &Row::new(costs.len()));
        Reply::ready(())
    }

    /// Says that the holder is alive, and keeps its resources for another [`lease_ttl`].
    ///
    /// `false` if they had expired: they may be somebody else's now. Without a `lease_ttl` nothing expires, and
    /// a lease that holds no resource has nothing to lose.
    ///
    /// [`lease_ttl`]: crate::LimitSetBuilder::lease_ttl
    pub fn heartbeat(&self) -> Reply<'_, bool> {
        Reply::ready(self.renew())
    }

    /// Keeps the resources for another term. If they are lost, that is told once.
    fn renew(&self) -> bool {
        let set = self.set();
        let term = set.term(self.holder()).filter(|_| self.holds_resources());
        let (Some(term), Some(extra)) = (term, &self.extra) else { return true };
        let alive = set.cell().renew(set.clock(), term);
        if !alive && !extra.told_expired.swap(true, Ordering::Relaxed) {
            set.reporter().report(&Event::ExpiredLease);
        }
        alive
    }

    fn holds_resources(&self) -> bool {
        let (names, costs) = (self.set().names(), self.costs());
        names.iter().zip(costs.amounts()).any(|(limit, amount)| limit.is_resource() && *amount > 0)
    }

    /// What was reported so far, or else what was reserved.
    #[inline]
    fn used_so_far(&mut self, costs: &Costs) -> Used {
        let reported = self.extra.as_mut().and_then(|extra| extra.reported.take());
        reported.unwrap_or_else(|| Used { amounts: costs.row().clone(), reported: 0 })
    }

    #[inline]
    fn note(&self, costs: &Costs, used: &mut Used, usage: &impl AsDemand) -> Result<(), SettleError> {
        let set = self.set();
        let mut result = match usage.bad_amount() {
            None => Ok(()),
            Some((name, why)) => {
                Err(SettleError::Usage(DemandError::BadAmount { name: name.into(), why: Box::new(why) }))
            }
        };
        // A broken amount reads as 0. Beside one, a 0 says nothing, and what was reserved stays charged.
        let is_broken = result.is_err();
        let parts = (0..usage.len()).map(|index| usage.part(index));
        for (name, amount) in parts.filter(|(_, amount)| *amount > 0 || !is_broken) {
            let noted = match set.names().index(name).filter(|index| costs.takes(*index)) {
                Some(index) => self.note_one(costs, used, index, amount),
                None => set.skip_unknown(name).map_err(SettleError::Usage),
            };
            if result.is_ok() {
                result = noted;
            }
        }
        result
    }

    #[inline]
    fn note_one(&self, costs: &Costs, used: &mut Used, index: usize, amount: u64) -> Result<(), SettleError> {
        let (limit, reserved) = (&self.set().names()[index], costs.amount(index));
        if matches!(limit.kind(), Kind::Calls(_)) && amount > reserved {
            return Err(SettleError::TooManyCalls { limit: limit.name().clone(), used: amount, reserved });
        }
        used.amounts[index] = amount;
        used.reported |= 1 << index;
        Ok(())
    }

    fn unreported(&self, costs: &Costs, used: &Used) -> Vec<Name> {
        let names = self.set().names();
        let wants = |index: &usize| {
            costs.is_explicit(*index) && !names[*index].is_resource() && used.reported >> index & 1 == 0
        };
        (0..costs.len()).filter(wants).map(|index| names[index].name().clone()).collect()
    }

    #[inline]
    fn end(&mut self, costs: &Costs, used: &[u64]) {
        // Whatever happens next, the lease has ended: dropping it must not end it again.
        self.is_open = false;
        let set = self.set();
        if used == costs.amounts() && !set.names().have_resources() {
            return;
        }
        let holder = self.holder().map(|holder| holder.get().into());
        if holder.is_some() {
            // For the event only: what has expired is not given back twice.
            self.renew();
        }
        let usage = Usage { at: self.at, reserved: costs, used, holder };
        let settlement = set.cell().settle(set.clock(), set.names(), &usage);
        // Over-use is a warning, which is heard also where ordinary events are not.
        let is_told = settlement.over_used != 0 || settlement.refunded != 0 && set.reporter().is_watched();
        if is_told {
            self.tell(costs, used);
        }
    }

    #[cold]
    fn tell(&self, costs: &Costs, used: &[u64]) {
        let set = self.set();
        for (index, limit) in set.names().iter().enumerate().filter(|(_, limit)| !limit.is_resource()) {
            let (reserved, used, limit) = (costs.amount(index), used[index], limit.name());
            if used < reserved {
                set.reporter().report(&Event::Refunded { limit, amount: reserved - used });
            } else if used > reserved {
                set.reporter().report(&Event::OverUsed { limit, amount: used - reserved });
            }
        }
    }

    #[cold]
    fn end_without_a_word(&mut self) {
        let costs = self.costs();
        let reported = self.extra.as_mut().and_then(|extra| extra.reported.take());
        let used = match (reported, self.set().on_drop()) {
            (Some(used), _) => used.amounts,
            (None, OnDrop::Keep) => costs.row().clone(),
            (None, OnDrop::Refund) => Row::new(costs.len()),
        };
        self.end(&costs, &used);
    }
}

impl Drop for Lease<'_> {
    #[inline]
    fn drop(&mut self) {
        let has_something_to_end = || self.extra.is_some() || self.set().ends_leases();
        if self.is_open && has_something_to_end() {
            self.end_without_a_word();
        }
    }
}

/// Without the values of the config, which may be secret.
impl fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.set().names().iter().map(|limit| limit.name());
        let costs = self.costs();
        let taken: Vec<_> = names.zip(costs.amounts()).collect();
        f.debug_struct("Lease").field("taken", &taken).field("waited", &self.waited()).finish_non_exhaustive()
    }
}
