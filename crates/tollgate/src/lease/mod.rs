//! The lease: what an admitted caller holds.

mod grant;
mod report;
mod settle;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate_core::{AsDemand, Costs, Demand, Kind, Limit, Limits, Name, Packed, Span, Tick};
use tollgate_store::{Reply, StoreError, Taken};

pub(crate) use grant::Grant;
use report::UsageReport;

use crate::heartbeat::all_alive;
use crate::process_flag::ProcessFlag;
use crate::set::Backing;
use crate::{AcquireError, Attempt, LeaseError, LimitSet};

/// The config of a set: region, account, endpoint, tier.
pub type Config = BTreeMap<String, String>;

/// What happens to a lease that is dropped without an end: by an early return, a panic or a cancelled task. Resources are
/// free in any case, and what was reported counts.
///
/// ```
/// use tollgate::{demand, Limit, LimitSet, OnDrop};
///
/// let left_after = |on_drop| {
///     let set = LimitSet::builder().limits([Limit::per_minute("rpm", 10)]).on_drop(on_drop).build()?;
///     drop(set.acquire(demand! { rpm: 4 }).wait()?);
///     Ok::<i64, tollgate::Error>(set.peek().wait()?.limits[0].available())
/// };
/// assert_eq!(left_after(OnDrop::Keep)?, 6);
/// assert_eq!(left_after(OnDrop::Refund)?, 10);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDrop {
    /// The reservation stays charged: the call may have been made.
    #[default]
    Keep,
    /// The reservation is given back.
    Refund,
}

/// What an admitted caller holds, until it settles, commits, cancels or drops it. Whatever it does, it counts once.
///
/// A lease borrows its set; [`into_owned`](Lease::into_owned) makes one that can be sent anywhere. It belongs to the process that
/// took it: after a `fork` its copy in the child does nothing, however it ends there, and a heartbeat of the copy answers `false`.
///
/// ```
/// use tollgate::{demand, Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::per_minute("tpm", 1_000), Limit::resource("connections", 2)])?;
/// let lease = set.acquire(demand! { tpm: 400 }).wait()?;
/// assert_eq!(set.peek().wait()?.limit("connections").unwrap().available(), 1);
/// lease.settle(demand! { tpm: 150 }).wait()?;
/// assert_eq!(set.peek().wait()?.limit("connections").unwrap().available(), 2);
/// assert_eq!(set.peek().wait()?.limit("tpm").unwrap().available(), 850);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a lease that is dropped at once frees its resources and keeps the rest charged"]
pub struct Lease<'a> {
    set: HeldLease<'a>,
    at: Tick,
    taken: Packed,
    extra: Cold,
    /// Whether dropping it has anything to end.
    ends_on_drop: ProcessFlag,
}

/// State that few leases have, in a box: moving a larger lease would cost more than taking it.
#[derive(Default)]
struct Cold(Option<Box<ColdState>>);

#[derive(Default)]
struct ColdState {
    /// The costs, if they could not be packed.
    costs: Option<Costs>,
    /// The holder of the resources, if they can expire.
    holder: Option<NonZeroU64>,
    waited: Option<Span>,
    /// The usage of each limit so far, and which limits were reported.
    reported: Option<(Vec<u64>, UsageReport)>,
    /// Whether the expiry of the resources was reported.
    reported_expired: AtomicBool,
    /// The grant of the store, if the set is in one and the lease has not ended.
    grant: Option<Grant>,
    /// The shadow limits that would have denied the call, and the soft limits that it passed.
    warnings: Vec<Name>,
    /// Parts taken later, by [`Lease::consume`].
    consumed: Vec<Lease<'static>>,
}

enum HeldLease<'a> {
    Borrowed(&'a LimitSet),
    Owned(LimitSet),
}

impl Drop for Cold {
    /// Most leases have nothing here, so the check is inlined and the drop is not.
    #[inline(always)]
    fn drop(&mut self) {
        #[cold]
        #[inline(never)]
        fn drop_there(extra: Box<ColdState>) {
            drop(extra);
        }
        if let Some(extra) = self.0.take() {
            drop_there(extra);
        }
    }
}

impl ColdState {
    #[cold]
    fn boxed(costs: Option<&Costs>, holder: Option<NonZeroU64>, waited: Option<Duration>) -> Box<ColdState> {
        let waited = waited.map(Span::covering);
        Box::new(ColdState { costs: costs.cloned(), holder, waited, ..ColdState::default() })
    }

    /// Returns the costs, if they are not packed.
    fn costs(&self) -> Option<&Costs> {
        self.costs.as_ref().or_else(|| self.grant.as_ref().map(Grant::costs))
    }

    fn is_first_report(&self) -> bool {
        !self.reported_expired.swap(true, Ordering::Relaxed)
    }
}

/// Returns the names of these limits.
pub(crate) fn names_of<'l>(limits: impl IntoIterator<Item = &'l Limit>) -> Vec<Name> {
    limits.into_iter().map(|limit| limit.name().clone()).collect()
}

impl<'a> Lease<'a> {
    /// Makes an ordinary lease: the caller did not wait for it, and nothing of it expires.
    #[inline(always)]
    pub(crate) fn bare(set: &'a LimitSet, at: Tick, taken: Packed) -> Lease<'a> {
        let ends_on_drop = ProcessFlag::of_this_process(set.ends_leases());
        Lease { set: HeldLease::Borrowed(set), at, taken, extra: Cold(None), ends_on_drop }
    }

    pub(crate) fn new(
        set: &'a LimitSet,
        Taken { at, warnings }: Taken,
        costs: &Costs,
        holder: Option<NonZeroU64>,
        waited: Option<Duration>,
    ) -> Lease<'a> {
        let packed = costs.pack();
        let extra = if packed.is_none() || holder.is_some() || waited.is_some() || warnings != 0 {
            let mut extra = ColdState::boxed(packed.is_none().then_some(costs), holder, waited);
            extra.warnings = names_of(set.names().warned(warnings));
            Some(extra)
        } else {
            None
        };
        let ends_on_drop = ProcessFlag::of_this_process(extra.is_some() || set.ends_leases());
        Lease {
            set: HeldLease::Borrowed(set),
            at,
            taken: packed.unwrap_or_default(),
            extra: Cold(extra),
            ends_on_drop,
        }
    }

    fn costs(&self) -> Costs {
        if let Some(costs) = self.extra.0.as_ref().and_then(|extra| extra.costs()) {
            return costs.clone();
        }
        let mut costs = Costs::none(self.names().len());
        costs.unpack(&self.taken);
        costs
    }

    /// Returns the usage so far: as reserved, unless it was reported.
    fn used_so_far(&mut self, costs: &Costs) -> (Vec<u64>, UsageReport) {
        let reported = self.extra.0.as_mut().and_then(|extra| extra.reported.take());
        reported.unwrap_or_else(|| (costs.amounts().to_vec(), UsageReport::default()))
    }

    /// Returns the parts taken later by [`consume`](Lease::consume).
    fn consumed(&self) -> &[Lease<'static>] {
        self.extra.0.as_ref().map_or(&[], |extra| &extra.consumed)
    }

    fn extra(&mut self) -> &mut ColdState {
        self.extra.0.get_or_insert_default()
    }

    #[inline]
    fn holder(&self) -> Option<NonZeroU64> {
        self.extra.0.as_ref()?.holder
    }

    /// Returns the set that it was taken from.
    #[inline]
    pub fn set(&self) -> &LimitSet {
        match &self.set {
            HeldLease::Borrowed(set) => set,
            HeldLease::Owned(set) => set,
        }
    }

    /// Returns the limits that its costs are counted in.
    #[inline(always)]
    fn names(&self) -> &Limits {
        match &self.extra.0 {
            None => self.set().names(),
            Some(_) => self.names_with_extra(),
        }
    }

    #[cold]
    fn names_with_extra(&self) -> &Limits {
        self.grant().map_or_else(|| self.set().names(), Grant::limits)
    }

    /// Returns a bit for each of its limits that the program does not name.
    fn foreign(&self) -> u64 {
        self.grant().map_or(0, |grant| grant.foreign)
    }

    /// Returns whether it limits less than it should, because the store was unavailable: nothing was taken, or it was taken
    /// from a bucket that only this process sees.
    pub fn is_degraded(&self) -> bool {
        self.grant().is_some_and(Grant::is_degraded) || self.consumed().iter().any(Lease::is_degraded)
    }

    /// Returns whether this process took it. In a process forked since, the lease is a copy that does nothing.
    #[inline(always)]
    fn is_of_this_process(&self) -> bool {
        self.ends_on_drop.is_of_this_process()
    }

    /// Drops a copy in a forked process, with nothing ended.
    #[cold]
    fn drop_copy(mut self) -> Reply<'static, Result<(), LeaseError>> {
        self.ends_on_drop.set(false);
        Reply::ready(Ok(()))
    }

    /// Returns the config of the set, such as the account or region to use.
    pub fn config(&self) -> &Config {
        self.set().config()
    }

    /// Returns how long the caller waited for it, if it did.
    pub fn waited(&self) -> Option<Duration> {
        self.extra.0.as_ref()?.waited.map(Span::to_duration)
    }

    /// Returns the limits in shadow mode that would have denied the call, and the soft limits that it passed.
    pub fn warnings(&self) -> &[Name] {
        self.extra.0.as_ref().map_or(&[], |extra| &extra.warnings)
    }

    /// Returns what was taken of the limit with this name, by [`consume`](Lease::consume) as well; `None` if nothing was.
    pub fn reserved(&self, limit: &str) -> Option<u64> {
        let consumed = self.consumed();
        let own = || {
            let (index, costs) = (self.names().index(limit)?, self.costs());
            costs.takes(index).then(|| costs.amount(index))
        };
        own()
            .into_iter()
            .chain(consumed.iter().filter_map(|lease| lease.reserved(limit)))
            .reduce(|a, b| a + b)
    }

    /// Returns the [reported](Lease::report) usage of the limit with this name; `None` if none was reported.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitSet};
    ///
    /// let set = LimitSet::new([Limit::per_minute("tpm", 1_000)])?;
    /// let mut lease = set.acquire(demand! { tpm: 400 }).wait()?;
    /// assert_eq!((lease.reserved("tpm"), lease.reported("tpm")), (Some(400), None));
    /// lease.report(demand! { tpm: 150 })?;
    /// assert_eq!(lease.reported("tpm"), Some(150));
    /// lease.commit().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reported(&self, limit: &str) -> Option<u64> {
        let index = self.names().index(limit)?;
        let (used, noted) = self.extra.0.as_ref()?.reported.as_ref()?;
        // A cooldown may have the place past the last bit, and is never reported.
        let is_noted = noted.limits.checked_shr(u32::try_from(index).ok()?)? & 1 == 1;
        is_noted.then(|| used[index])
    }

    /// Returns the lease without the borrow, to be sent to another thread or task.
    pub fn into_owned(mut self) -> Lease<'static> {
        Lease {
            set: HeldLease::Owned(self.set().clone()),
            at: self.at,
            taken: self.taken,
            extra: std::mem::take(&mut self.extra),
            ends_on_drop: self.ends_on_drop.take(),
        }
    }

    /// Takes more from the set, all or nothing, now, and holds it like the rest. Only what the demand names is taken: no further
    /// call and no further resource. What is reported later is counted against what was taken at first.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitSet};
    ///
    /// let set = LimitSet::new([Limit::per_minute("tpm", 1_000), Limit::resource("connections", 1)])?;
    /// let mut lease = set.acquire(demand! { tpm: 500 }).wait()?;
    /// lease.consume(demand! { tpm: 300 }).wait()?;
    /// assert_eq!(lease.reserved("tpm"), Some(800));
    /// assert!(lease.consume(demand! { tpm: 300 }).wait().is_err(), "200 are left");
    /// lease.cancel().wait()?;
    /// assert_eq!(set.peek().wait()?.limit("tpm").unwrap().available(), 1_000);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time takes nothing more.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::try_acquire`], with a denial as [`AcquireError::Denied`]; the lease is as it was.
    pub fn consume(&mut self, demand: impl AsDemand) -> Reply<'_, Result<(), AcquireError>> {
        let demand = self.only_named(&demand);
        Reply::later(async move {
            if !self.is_of_this_process() {
                let why = "the lease belongs to the process that took it; acquire one here";
                return Err(StoreError::BadCall(why.into()).into());
            }
            let more = match self.set().try_acquire(&demand).await? {
                Attempt::Admitted(lease) => lease.into_owned(),
                Attempt::Denied(denial) => return Err(AcquireError::Denied(denial)),
            };
            self.extra().consumed.push(more);
            self.ends_on_drop.set(true);
            Ok(())
        })
    }

    /// Returns the demand with 0 of the calls and resources that it does not name; otherwise it would take 1 of each.
    fn only_named(&self, demand: &impl AsDemand) -> Demand {
        let named = |name: &str| (0..demand.len()).any(|index| demand.part(index).0.as_str() == name);
        let implied = |limit: &&Limit| limit.is_resource() || matches!(limit.kind(), Kind::Calls(_));
        let limits = self.set().names().iter().filter(implied).map(Limit::name).filter(|name| !named(name));
        limits.fold(Demand::copy_of(demand), |demand, name| demand.with(name, 0))
    }

    /// Sends a heartbeat: the holder keeps its resources for another [`lease_ttl`].
    ///
    /// Returns `false` if they had expired: they may be another holder's now. Without a `lease_ttl` nothing expires, and
    /// a lease that holds no resource has nothing to lose. On a set in a store there is no need to call it, unless
    /// [heartbeats](crate::LimitSetBuilder::heartbeats) are left to the holder.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the resources may be kept for another term or not.
    ///
    /// # Errors
    ///
    /// The store could not answer.
    ///
    /// [`lease_ttl`]: crate::LimitSetBuilder::lease_ttl
    pub fn heartbeat(&self) -> Reply<'_, Result<bool, LeaseError>> {
        if !self.is_of_this_process() {
            return Reply::ready(Ok(false));
        }
        let own = self.beat_stored().unwrap_or_else(|| Reply::ready(Ok(self.renew())));
        if self.consumed().is_empty() {
            return own;
        }
        all_alive(std::iter::once(own).chain(self.consumed().iter().map(Lease::heartbeat)))
    }

    /// Returns whether the resources are known to be lost: the holder was silent for too long, or they were taken from
    /// it on purpose, and they may be another holder's now. Heartbeats find out, by themselves on a set in a store, and
    /// an [observer](crate::LimitSetBuilder::observer) is notified. What is [settled](Lease::settle) counts all the
    /// same.
    pub fn lost(&self) -> bool {
        let extra = self.extra.0.as_ref();
        self.is_lost_in_store()
            || extra.is_some_and(|extra| extra.reported_expired.load(Ordering::Relaxed))
            || self.consumed().iter().any(Lease::lost)
    }

    /// Renews the resources for another term. A loss is reported once.
    fn renew(&self) -> bool {
        let set = self.set();
        let term = set.term(self.holder()).filter(|_| self.holds_resources());
        let (Some(term), Backing::Local(cell)) = (term, set.backing()) else { return true };
        let alive = cell.renew(set.clock(), term);
        if !alive {
            self.report_expired();
        }
        alive
    }

    fn holds_resources(&self) -> bool {
        let (names, costs) = (self.names(), self.costs());
        names.iter().zip(costs.amounts()).any(|(limit, amount)| limit.is_resource() && *amount > 0)
    }
}

/// Without the values of the config, which may be secret.
impl fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names().iter().map(|limit| limit.name());
        let costs = self.costs();
        let taken: Vec<_> = names.zip(costs.amounts()).collect();
        f.debug_struct("Lease").field("taken", &taken).field("waited", &self.waited()).finish_non_exhaustive()
    }
}
