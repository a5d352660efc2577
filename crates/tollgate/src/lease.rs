//! The lease: what an admitted caller holds.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use tollgate_core::{AsDemand, BadAmount, Costs, DemandError, Kind, Name, Packed, Row, Span, Tick, Usage};
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
    /// Whether dropping it without a word has anything to do.
    ends_on_drop: bool,
}

#[derive(Clone, Default)]
struct Extra {
    /// What was taken, if it could not be packed.
    costs: Option<Costs>,
    /// The holder of the resources, if they can expire.
    holder: Option<NonZeroU64>,
    waited: Option<Span>,
    reported: Option<Used>,
}

impl Used {
    /// Nothing was used of `limits` limits.
    #[inline(always)]
    fn nothing(limits: usize) -> Used {
        Used { amounts: Row::new(limits), reported: 0, differs: false }
    }
}

impl Extra {
    #[cold]
    fn used_into(&mut self, taken: &Packed, used: &mut Used) {
        match (self.reported.take(), &self.costs) {
            (Some(reported), _) => *used = reported,
            (None, Some(costs)) => used.amounts.copy_from_slice(costs.amounts()),
            (None, None) => taken.amounts_into(&mut used.amounts),
        }
    }

    #[cold]
    fn boxed(costs: Option<&Costs>, holder: Option<NonZeroU64>, waited: Option<Duration>) -> Box<Extra> {
        let waited = waited.map(Span::covering);
        Box::new(Extra { costs: costs.cloned(), holder, waited, reported: None })
    }
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
    /// Whether any amount differs from what was reserved.
    differs: bool,
}

impl<'a> Lease<'a> {
    #[inline(always)]
    pub(crate) fn new(
        set: &'a LimitSet,
        at: Tick,
        costs: &Costs,
        holder: Option<NonZeroU64>,
        waited: Option<Duration>,
    ) -> Lease<'a> {
        let packed = costs.pack();
        let extra = if packed.is_none() || holder.is_some() || waited.is_some() {
            Some(Extra::boxed(packed.is_none().then_some(costs), holder, waited))
        } else {
            None
        };
        let ends_on_drop = extra.is_some() || set.ends_leases();
        Lease { set: Held::Borrowed(set), at, taken: packed.unwrap_or_default(), extra, ends_on_drop }
    }

    /// What was taken. Costs and usage are written into places of the caller's: moving them about right after
    /// they were written would cost more than all the rest.
    #[inline(always)]
    fn costs_into(&self, costs: &mut Costs) {
        match self.extra.as_ref().and_then(|extra| extra.costs.as_ref()) {
            Some(taken) => costs.clone_from(taken),
            None => costs.unpack(&self.taken),
        }
    }

    fn costs(&self) -> Costs {
        let mut costs = Costs::none(self.set().names().len());
        self.costs_into(&mut costs);
        costs
    }

    /// What was reported so far, or else what was reserved.
    #[inline(always)]
    fn used_into(&mut self, used: &mut Used) {
        match &mut self.extra {
            None => self.taken.amounts_into(&mut used.amounts),
            Some(extra) => extra.used_into(&self.taken, used),
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
        Lease {
            set: Held::Owned(self.set().clone()),
            at: self.at,
            taken: self.taken,
            extra: self.extra.take(),
            ends_on_drop: std::mem::take(&mut self.ends_on_drop),
        }
    }

    /// Notes what was used, to count when the lease ends. The last word on a limit counts.
    ///
    /// # Errors
    ///
    /// [`SettleError`] if the report is not valid; what is valid in it is noted all the same.
    pub fn report(&mut self, usage: impl AsDemand) -> Result<(), SettleError> {
        let costs = self.costs();
        let mut used = Used::nothing(costs.len());
        self.used_into(&mut used);
        let result = self.note(&costs, &mut used, &usage);
        self.extra().reported = Some(used);
        self.ends_on_drop = true;
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
        let limits = self.set().names().len();
        let (mut costs, mut used) = (Costs::none(limits), Used::nothing(limits));
        self.costs_into(&mut costs);
        self.used_into(&mut used);
        let result = self.note(&costs, &mut used, &usage);
        self.end(&costs, &used);
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
        let mut used = Used::nothing(costs.len());
        self.used_into(&mut used);
        let missing = self.unreported(&costs, &used);
        self.end(&costs, &used);
        Reply::ready(if missing.is_empty() { Ok(()) } else { Err(ReleaseError::Unreported(missing)) })
    }

    /// Ends the lease as if nothing had been taken: for calls that were never made.
    pub fn cancel(mut self) -> Reply<'static, ()> {
        let costs = self.costs();
        self.end(&costs, &Used { differs: true, ..Used::nothing(costs.len()) });
        Reply::ready(())
    }

    /// Says that the holder is alive, and keeps its resources for another [`lease_ttl`].
    ///
    /// `false` if they had expired: they may be somebody else's now. Without a `lease_ttl` nothing expires.
    ///
    /// [`lease_ttl`]: crate::LimitSetBuilder::lease_ttl
    pub fn heartbeat(&self) -> Reply<'_, bool> {
        let Some(term) = self.set().term(self.holder()) else { return Reply::ready(true) };
        let alive = self.set().cell().renew(self.set().clock(), term);
        if !alive {
            self.set().reporter().report(&Event::ExpiredLease);
        }
        Reply::ready(alive)
    }

    #[inline(always)]
    fn note(&self, costs: &Costs, used: &mut Used, usage: &impl AsDemand) -> Result<(), SettleError> {
        let mut wrong = usage.bad_amount().map(|(name, why)| bad_amount(name, why));
        for (name, amount) in (0..usage.len()).map(|index| usage.part(index)) {
            let index = self.set().names().index(name).filter(|index| costs.takes(*index));
            if !index.is_some_and(|index| self.note_one(costs, used, index, amount)) {
                wrong = wrong.or_else(|| self.refuse(costs, index, name, amount));
            }
        }
        match wrong {
            None => Ok(()),
            Some(error) => Err(*error),
        }
    }

    #[inline(always)]
    fn note_one(&self, costs: &Costs, used: &mut Used, index: usize, amount: u64) -> bool {
        let reserved = costs.amount(index);
        if amount > reserved && matches!(self.set().names()[index].kind(), Kind::Calls(_)) {
            return false;
        }
        used.differs |= amount != reserved;
        used.amounts[index] = amount;
        used.reported |= 1 << index;
        true
    }

    /// What is wrong with a report that could not be noted, if anything is.
    #[cold]
    fn refuse(&self, costs: &Costs, index: Option<usize>, name: &str, used: u64) -> Option<Box<SettleError>> {
        let Some(index) = index else {
            return self.set().skip_unknown(name).err().map(|error| Box::new(SettleError::Usage(error)));
        };
        let limit = self.set().names()[index].name().clone();
        Some(Box::new(SettleError::TooManyCalls { limit, used, reserved: costs.amount(index) }))
    }

    fn unreported(&self, costs: &Costs, used: &Used) -> Vec<Name> {
        let names = self.set().names();
        let wants = |index: &usize| {
            costs.is_explicit(*index) && !names[*index].is_resource() && used.reported >> index & 1 == 0
        };
        (0..costs.len()).filter(wants).map(|index| names[index].name().clone()).collect()
    }

    #[inline]
    fn end(&mut self, costs: &Costs, used: &Used) {
        // Whatever happens next, the lease has ended: dropping it must not end it again.
        self.ends_on_drop = false;
        let set = self.set();
        if !used.differs && !set.names().have_resources() {
            return;
        }
        let holder = self.holder().map(|holder| holder.get().into());
        let usage = Usage { at: self.at, reserved: costs, used: &used.amounts, holder };
        set.cell().settle(set.clock(), set.names(), &usage);
        if used.differs && (set.reporter().is_watched() || usage.is_over()) {
            self.tell(costs, &used.amounts);
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
        let mut used = Used::nothing(costs.len());
        self.used_into(&mut used);
        if used.reported == 0 && self.set().on_drop() == OnDrop::Refund {
            used = Used { differs: true, ..Used::nothing(costs.len()) };
        }
        self.end(&costs, &used);
    }
}

#[cold]
fn bad_amount(name: &str, why: BadAmount) -> Box<SettleError> {
    Box::new(SettleError::Usage(DemandError::BadAmount { name: name.into(), why: Box::new(why) }))
}

impl Drop for Lease<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.ends_on_drop {
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
