//! The lease of a limiter: what an admitted caller holds, of every entity it is charged to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate_catalog::ChainLink;
use tollgate_core::{AsDemand, Costs, Limits, Name};
use tollgate_store::{LeaseTerm, Priority, Reply, StepOutcome, StoreError};

use super::pinned::PinnedTake;
use super::plan::{LimiterRequest, MoreOf, PlannedTake, chain_status};
use super::planner::LimiterPlanner;
use super::route::Route;
use super::settle::Deltas;
use super::ticket::Ticket;
use super::{Limiter, LimiterError, LimiterShared};
use crate::LeaseError;
use crate::admission::{AdmittedPlan, Decision, WaitPolicy, admit};
use crate::heartbeat::all_alive;
use crate::process_flag::ProcessFlag;
use crate::reservation::{Origin, Reservation, ReservedTake};

/// What an admitted caller holds, until it is settled, committed, cancelled or dropped. Whatever happens, it counts once.
///
/// Dropped without an end, by an early return, a panic or a cancelled task, it frees its resources, and what was reserved stays
/// charged, because the call may have been made; [`on_drop`](super::LimiterBuilder::on_drop) can change that, and
/// [`run`](crate::Acquire::run) gives everything back. It belongs to the process that took it: after a `fork` its copy in the child does nothing, however it ends there.
///
/// ```
/// use tollgate::{demand, Level, Limit, Limiter, Limits};
///
/// let limiter = Limiter::in_memory()?;
/// let limits = Limits::new([Limit::per_minute("tpm", 1_000)])?;
/// limiter.catalog().set_limits(Level::Resource("gpt-4"), &limits).wait()?;
///
/// let lease = limiter.acquire("user-1", "gpt-4", demand! { tpm: 500 }).wait()?;
/// // ... call the API, and hear that it took 2,000 tokens ...
/// lease.settle(demand! { tpm: 2_000 }).wait()?;
/// assert_eq!(limiter.available("user-1", "gpt-4").wait()?.available("tpm"), Some(-1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a lease that is dropped at once frees its resources and keeps the rest charged"]
pub struct LimiterLease<'a> {
    limiter: LeaseSource<'a>,
    pub(super) grant: LimiterGrant,
    pub(super) extra: Option<Box<LeaseExtra>>,
    /// Whether it has not ended.
    pub(super) open: ProcessFlag,
}

enum LeaseSource<'a> {
    Borrowed(&'a Limiter),
    Owned(Limiter),
}

/// State that few leases have.
#[derive(Default)]
pub(super) struct LeaseExtra {
    waited: Option<Duration>,
    pub(super) deltas: Deltas,
}

/// Where a lease was taken, and what.
pub(super) enum LimiterGrant {
    /// From the only bucket of a route, in this process.
    Pinned { route: Arc<Route>, take: PinnedTake },
    /// From all buckets of a route, in this process.
    PinnedChain { route: Arc<Route>, takes: Box<[PinnedTake]> },
    /// From buckets of the store, or of the memory that replaces it while it is unavailable.
    Stored(Box<StoredGrant>),
    /// From nothing: the store was unavailable, and the policy was to allow.
    Nothing,
}

/// What a lease holds of buckets of a store.
pub(super) struct StoredGrant {
    /// The first one, then one for each [`LimiterLease::consume`].
    pub(super) reservations: Vec<Reservation>,
    pub(super) resources: Vec<Box<str>>,
    pub(super) entity: Box<str>,
    warnings: Vec<Name>,
    /// Whether it may outlive this process.
    pub(super) is_detached: bool,
    /// The ticket that it was redeemed from.
    pub(super) ticket: Option<Ticket>,
}

/// Makes the reservation of an admitted plan. Heartbeats renew it, unless it may outlive this process.
fn reserve(
    shared: &LimiterShared,
    plan: &[PlannedTake],
    outcomes: &[StepOutcome],
    term: Option<LeaseTerm>,
    is_detached: bool,
) -> Reservation {
    let reserved =
        |(planned, outcome): (&PlannedTake, _)| planned.reserved(Some(outcome)).pinned(&shared.store);
    let takes = plan.iter().zip(outcomes).map(reserved).collect();
    let reservation = Reservation::new(takes, Origin::Store, term);
    if is_detached {
        return reservation;
    }
    reservation.with_heartbeat(&shared.store, shared.settings.heartbeats, &shared.reporter)
}

impl StoredGrant {
    fn from(reservations: Vec<Reservation>, resources: Vec<Box<str>>, entity: &str) -> StoredGrant {
        let (entity, warnings) = (entity.into(), Vec::new());
        StoredGrant { reservations, resources, entity, warnings, is_detached: false, ticket: None }
    }

    pub(super) fn new(
        shared: &LimiterShared,
        request: &LimiterRequest<'_>,
        plan: &[PlannedTake],
        outcomes: &[StepOutcome],
        term: Option<LeaseTerm>,
        warnings: Vec<Name>,
    ) -> StoredGrant {
        let is_detached = request.detached.is_some();
        let reservation = reserve(shared, plan, outcomes, term, is_detached);
        let grant = StoredGrant::from(vec![reservation], request.resources(), request.entity);
        StoredGrant { warnings, is_detached, ..grant }
    }

    /// Makes the grant of what was taken from the buckets of a route, which are all in this process.
    fn of_route(route: &Route, takes: &[PinnedTake]) -> StoredGrant {
        let reserved = |(index, take): (usize, &PinnedTake)| {
            let ChainLink { key, limits, .. } = &route.chain.links[index];
            ReservedTake {
                key: key.clone(),
                limits: limits.clone(),
                costs: take.costs(limits, index),
                at: take.at,
                resource: 0,
                pin: route.pins.as_ref().and_then(|pins| pins.pins.get(index)).cloned(),
            }
        };
        let takes = takes.iter().enumerate().map(reserved).collect();
        let reservation = Reservation::new(takes, Origin::Store, None);
        StoredGrant::from(vec![reservation], vec![route.resource().into()], route.entity())
    }

    /// Makes a grant of the memory that replaces the store while it is unavailable.
    pub(super) fn local(
        request: &LimiterRequest<'_>,
        plan: &[PlannedTake],
        outcomes: &[StepOutcome],
    ) -> StoredGrant {
        let takes = plan.iter().zip(outcomes).map(|(planned, outcome)| planned.reserved(Some(outcome)));
        let reservation = Reservation::new(takes.collect(), Origin::Fallback, None);
        StoredGrant::from(vec![reservation], request.resources(), request.entity)
    }

    /// Makes the grant that a ticket names.
    pub(super) fn redeemed(
        reservations: Vec<Reservation>,
        resources: Vec<Box<str>>,
        entity: &str,
    ) -> StoredGrant {
        StoredGrant { is_detached: true, ..StoredGrant::from(reservations, resources, entity) }
    }

    /// Returns who holds its resources, and for how long, if they can expire.
    pub(super) fn term(&self) -> Option<LeaseTerm> {
        self.reservations.iter().find_map(|reservation| reservation.term)
    }

    pub(super) fn takes(&self) -> impl Iterator<Item = &ReservedTake> {
        self.reservations.iter().flat_map(|reservation| &reservation.takes)
    }

    pub(super) fn is_degraded(&self) -> bool {
        self.reservations.iter().any(Reservation::is_degraded)
    }

    pub(super) fn resource_index(&self, resource: &str) -> Result<usize, LeaseError> {
        let found = self.resources.iter().position(|name| **name == *resource);
        found.ok_or_else(|| LeaseError::OtherResource(resource.into(), self.resources.join(", ")))
    }
}

impl<'a> LimiterLease<'a> {
    #[inline]
    pub(super) fn pinned(limiter: &'a Limiter, grant: LimiterGrant) -> LimiterLease<'a> {
        LimiterLease {
            limiter: LeaseSource::Borrowed(limiter),
            grant,
            extra: None,
            open: ProcessFlag::of_this_process(true),
        }
    }

    pub(super) fn stored(
        limiter: &'a Limiter,
        stored: StoredGrant,
        waited: Option<Duration>,
    ) -> LimiterLease<'a> {
        let extra =
            waited.map(|waited| Box::new(LeaseExtra { waited: Some(waited), ..LeaseExtra::default() }));
        let grant = LimiterGrant::Stored(Box::new(stored));
        LimiterLease {
            limiter: LeaseSource::Borrowed(limiter),
            grant,
            extra,
            open: ProcessFlag::of_this_process(true),
        }
    }

    pub(super) fn nothing(limiter: &'a Limiter) -> LimiterLease<'a> {
        let (limiter, grant) = (LeaseSource::Borrowed(limiter), LimiterGrant::Nothing);
        LimiterLease { limiter, grant, extra: None, open: ProcessFlag::of_this_process(true) }
    }

    /// Returns whether this process took it. In a process forked since, the lease is a copy that does nothing.
    #[inline]
    pub(super) fn is_of_this_process(&self) -> bool {
        self.open.is_of_this_process()
    }

    /// Returns the limiter that it was taken from.
    #[inline]
    pub fn limiter(&self) -> &Limiter {
        match &self.limiter {
            LeaseSource::Borrowed(limiter) => limiter,
            LeaseSource::Owned(limiter) => limiter,
        }
    }

    #[inline]
    pub(super) fn shared(&self) -> &Arc<LimiterShared> {
        &self.limiter().0
    }

    /// Closes the lease: dropping it gives nothing back.
    pub(super) fn close(&mut self) {
        self.open.set(false);
    }

    /// Returns the lease without the borrow, to be sent to another thread or task.
    pub fn into_owned(mut self) -> LimiterLease<'static> {
        LimiterLease {
            limiter: LeaseSource::Owned(self.limiter().clone()),
            grant: std::mem::replace(&mut self.grant, LimiterGrant::Nothing),
            extra: self.extra.take(),
            open: self.open.take(),
        }
    }

    /// Returns whether it limits less than it should, because the store was unavailable: nothing was taken, or it was taken
    /// from a bucket that only this process sees.
    pub fn is_degraded(&self) -> bool {
        match &self.grant {
            LimiterGrant::Pinned { .. } | LimiterGrant::PinnedChain { .. } => false,
            LimiterGrant::Stored(stored) => stored.is_degraded(),
            LimiterGrant::Nothing => true,
        }
    }

    /// Returns how long the caller waited for it, if it did.
    pub fn waited(&self) -> Option<Duration> {
        self.extra.as_ref()?.waited
    }

    /// Returns the limits in shadow mode that would have denied the call, and the soft limits that it passed.
    pub fn warnings(&self) -> &[Name] {
        match &self.grant {
            LimiterGrant::Stored(stored) => &stored.warnings,
            _ => &[],
        }
    }

    /// Returns what was taken of a limit of the resource of the call, by [`consume`](LimiterLease::consume) as well; `None` if
    /// nothing was.
    pub fn reserved(&self, limit: &str) -> Option<u64> {
        let taken = |limits: &Limits, costs: &Costs| {
            let index = limits.index(limit)?;
            costs.takes(index).then(|| costs.amount(index))
        };
        if let Some((route, takes)) = self.pinned_takes() {
            let limits = &route.chain.links[0].limits;
            return taken(limits, &takes.first()?.costs(limits, 0));
        }
        let LimiterGrant::Stored(stored) = &self.grant else { return None };
        let own = stored.reservations.iter().filter_map(|reservation| reservation.takes.first());
        own.filter_map(|take| taken(&take.limits, &take.costs)).reduce(|a, b| a + b)
    }

    /// Returns the limits of the resource of the call that were in force for the entity when it was taken; `None` if nothing was
    /// taken, because the store was unavailable. Of a lease that was redeemed only their names count.
    pub fn limits(&self) -> Option<&Limits> {
        match &self.grant {
            LimiterGrant::Pinned { route, .. } | LimiterGrant::PinnedChain { route, .. } => {
                Some(&route.chain.links.first()?.limits)
            }
            LimiterGrant::Stored(stored) => Some(&stored.takes().next()?.limits),
            LimiterGrant::Nothing => None,
        }
    }

    /// Returns what was reported of a limit of the resource of the call, with the adjustments since; `None` if nothing was.
    ///
    /// ```
    /// use tollgate::{demand, Level, Limit, Limiter, Limits};
    ///
    /// let limiter = Limiter::in_memory()?;
    /// limiter.catalog().set_limits(Level::System, &Limits::new([Limit::per_minute("tpm", 1_000)])?).wait()?;
    /// let mut lease = limiter.acquire("user-1", "gpt-4", demand! { tpm: 400 }).wait()?;
    /// assert_eq!((lease.reserved("tpm"), lease.reported("tpm")), (Some(400), None));
    /// lease.report(demand! { tpm: 150 })?;
    /// lease.adjust([("tpm", 20)])?;
    /// assert_eq!(lease.reported("tpm"), Some(170));
    /// assert_eq!(lease.limits().map(|limits| limits.len()), Some(1));
    /// lease.commit().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reported(&self, limit: &str) -> Option<u64> {
        let noted = self.extra.as_ref()?.deltas.noted(0, limit)?;
        let LimiterGrant::Stored(stored) = &self.grant else { return None };
        // What is reported counts against what was taken at first.
        let take = stored.takes().next()?;
        let reserved = take.costs.amount(take.limits.index(limit)?);
        u64::try_from(i128::from(reserved) + noted).ok()
    }

    /// Returns the entity and the resource of the call; `None` if nothing was taken, because the store was unavailable.
    pub fn called(&self) -> Option<(&str, &str)> {
        match &self.grant {
            LimiterGrant::Pinned { route, .. } | LimiterGrant::PinnedChain { route, .. } => {
                Some((route.entity(), route.resource()))
            }
            LimiterGrant::Stored(stored) => Some((&stored.entity, stored.resources.first()?)),
            LimiterGrant::Nothing => None,
        }
    }

    /// Returns what was taken directly from buckets in this process, if it was.
    pub(super) fn pinned_takes(&self) -> Option<(&Arc<Route>, &[PinnedTake])> {
        match &self.grant {
            LimiterGrant::Pinned { route, take } => Some((route, std::slice::from_ref(take))),
            LimiterGrant::PinnedChain { route, takes } => Some((route, takes)),
            LimiterGrant::Stored(_) | LimiterGrant::Nothing => None,
        }
    }

    /// Returns what was taken as what is taken from any store. A pinned grant becomes one when more is asked of it than to end.
    pub(super) fn as_stored(&mut self) -> Option<&mut StoredGrant> {
        if let Some((route, takes)) = self.pinned_takes() {
            self.grant = LimiterGrant::Stored(Box::new(StoredGrant::of_route(route, takes)));
        }
        match &mut self.grant {
            LimiterGrant::Stored(stored) => Some(stored),
            _ => None,
        }
    }

    /// Takes more for the same entity and resource, all or nothing, now, and holds it like the rest. Only what the demand names is
    /// taken: no further call and no further resource. What is reported later is counted against what was taken at first.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time takes nothing more.
    ///
    /// # Errors
    ///
    /// As [`Limiter::try_acquire`], with a denial as [`LimiterError::Denied`]; the lease is as it was.
    pub fn consume<'l, D>(&'l mut self, demand: D) -> Reply<'l, Result<(), LimiterError>>
    where
        D: AsDemand + Send + Sync + 'l,
    {
        Reply::later(async move {
            if !self.is_of_this_process() {
                let why = "the lease belongs to the process that took it; acquire one here";
                return Err(StoreError::BadCall(why.into()).into());
            }
            let limiter = self.limiter().clone();
            let Some(stored) = self.as_stored().filter(|stored| !stored.is_degraded()) else { return Ok(()) };
            if stored.ticket.is_some() {
                let why = "a lease that was redeemed takes no more; acquire another";
                return Err(StoreError::BadCall(why.into()).into());
            }
            let (entity, resource) = (stored.entity.clone(), stored.resources[0].clone());
            let more_of = Some(MoreOf { term: stored.term(), is_detached: stored.is_detached });
            let demands = vec![(&*resource, &demand as _)];
            let request = LimiterRequest { more_of, ..LimiterRequest::new(&entity, demands) };
            let planner = LimiterPlanner { shared: &limiter.0, request: &request };
            match admit(&limiter.0.store, &planner, WaitPolicy::at_once(Priority::default())).await? {
                Decision::Admitted(AdmittedPlan { plan, outcomes, term, .. }) => {
                    let is_detached = stored.is_detached;
                    stored.reservations.push(reserve(&limiter.0, &plan, &outcomes, term, is_detached));
                    Ok(())
                }
                Decision::Denied(denied) => {
                    Err(LimiterError::Denied(chain_status(&request, &denied.plan, denied.denials)))
                }
            }
        })
    }

    /// Sends a heartbeat: the holder keeps its resources for another term. Returns `false` if they had expired: they may
    /// be another holder's now.
    ///
    /// There is no need to call it: while a lease is open the limiter does so by itself. Without a
    /// [`lease_ttl`](super::LimiterBuilder::lease_ttl) nothing expires.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the resources may be kept for another term or not.
    ///
    /// # Errors
    ///
    /// The store could not answer.
    pub fn heartbeat(&self) -> Reply<'_, Result<bool, LeaseError>> {
        if !self.is_of_this_process() {
            return Reply::ready(Ok(false));
        }
        let LimiterGrant::Stored(stored) = &self.grant else { return Reply::ready(Ok(true)) };
        all_alive(stored.reservations.iter().map(|reservation| reservation.beat(&self.shared().store)))
    }

    /// Returns whether the resources are known to be lost: the holder was silent for too long, or they were taken from
    /// it on purpose, and they may be another holder's now. Heartbeats find out, and an
    /// [observer](super::LimiterBuilder::observer) is notified. What is [settled](LimiterLease::settle) counts all the same.
    pub fn lost(&self) -> bool {
        let LimiterGrant::Stored(stored) = &self.grant else { return false };
        stored.reservations.iter().any(Reservation::is_lost)
    }

    /// Stops heartbeats: from here on it is no loss that the store does not know the holder.
    pub(super) fn stop_beating(&mut self) {
        if let LimiterGrant::Stored(stored) = &mut self.grant {
            stored.reservations.iter_mut().for_each(Reservation::stop_heartbeat);
        }
    }
}

impl fmt::Debug for LimiterLease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LimiterLease");
        match &self.grant {
            LimiterGrant::Pinned { route, .. } | LimiterGrant::PinnedChain { route, .. } => {
                shown.field("entity", &route.entity()).field("resource", &route.resource())
            }
            LimiterGrant::Stored(stored) => {
                shown.field("entity", &stored.entity).field("resources", &stored.resources)
            }
            LimiterGrant::Nothing => shown.field("degraded", &true),
        };
        shown.finish_non_exhaustive()
    }
}
