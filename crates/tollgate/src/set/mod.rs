//! Limit sets: several limits taken together.

mod acquire;
mod builder;
mod try_acquire;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tollgate_core::{
    AsDemand, Costs, DemandError, Denial, Limit, LimitError, Limits, LimitsError, Ready, Span, Status, Tick,
};
use tollgate_store::{Cell, Clock, Priority, Reply, Term};

use crate::observe::Reporter;
use crate::{AcquireError, Attempt, Config, Event, Lease, OnDrop};

pub use acquire::{Acquire, Acquiring};
pub use builder::LimitSetBuilder;
pub use try_acquire::TryAcquire;

/// Several limits that are taken together or not at all. Cloning shares the set.
///
/// What a demand takes:
/// 1. What it names, as much as it asks. 0 is fine.
/// 2. One of each call limit and each resource that it does not name.
/// 3. Nothing of rates and quotas that it does not name; but a demand that names nothing at all must not leave
///    any out.
///
/// A name that is no limit of the set is skipped with one warning, because the same code runs where some limits
/// are switched off; a [`strict`](LimitSetBuilder::strict) set refuses it.
#[derive(Clone)]
pub struct LimitSet(Arc<Shared>);

struct Shared {
    cell: Arc<Cell>,
    /// Names and places never change; the numbers in force are the cell's.
    names: Limits,
    clock: Clock,
    config: Config,
    reporter: Reporter,
    strict: bool,
    on_drop: OnDrop,
    /// Whether a lease that is dropped without a word has anything to end.
    ends_leases: bool,
    lease_ttl: Option<Span>,
    holders: AtomicU64,
    waiters_max: usize,
    /// Held while limits are replaced: the new ones are made from the old, and no change may be lost between.
    changing: Mutex<()>,
}

/// How a set stands at one instant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SetStatus {
    /// Each limit, in the order of the set.
    pub limits: Vec<Status>,
    /// How many wait.
    pub waiting: usize,
    /// The end of the cooldown, if one lasts.
    pub cooling_until: Option<Tick>,
}

impl SetStatus {
    /// The status of the limit with this name.
    pub fn limit(&self, name: &str) -> Option<&Status> {
        self.limits.iter().find(|status| status.limit().name() == name)
    }
}

impl LimitSet {
    /// A set of these limits, in memory, with the usual settings.
    ///
    /// # Errors
    ///
    /// A limit that is not valid, or two of one name.
    pub fn new<I>(limits: I) -> Result<LimitSet, LimitsError>
    where
        I: IntoIterator,
        I::Item: TryInto<Limit>,
        LimitError: From<<I::Item as TryInto<Limit>>::Error>,
    {
        LimitSet::builder().limits(limits).build()
    }

    /// Settings to start from.
    pub fn builder() -> LimitSetBuilder {
        LimitSetBuilder::default()
    }

    /// Takes the demand now, or says why not and when. Never waits, and never overtakes those who do.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Demand`] for a demand that can never fit or is not valid. A denial is not an error.
    #[inline(always)]
    pub fn try_acquire<D: AsDemand>(&self, demand: D) -> TryAcquire<'_, D> {
        TryAcquire::new(self, demand)
    }

    #[inline]
    fn try_now(&self, demand: &impl AsDemand) -> Result<Attempt<'_>, AcquireError> {
        let mut costs = Costs::none(self.0.names.len());
        self.costs_into(&mut costs, demand)?;
        let holder = self.next_holder();
        match self.take(&costs, holder, Priority::default()) {
            Ok(at) => {
                if self.0.reporter.is_watched() {
                    return Ok(Attempt::Admitted(self.admit_watched(at, &costs, holder, None)));
                }
                Ok(Attempt::Admitted(Lease::new(self, at, &costs, holder, None)))
            }
            Err(denial) => self.denied(&costs, denial),
        }
    }

    #[inline(always)]
    fn take(
        &self,
        costs: &Costs,
        holder: Option<NonZeroU64>,
        priority: Priority,
    ) -> Result<Tick, Box<Denial>> {
        match holder {
            None => match self.0.cell.take_plain(&self.0.clock, costs) {
                Some(at) => Ok(at),
                None => self.take_uncommon(costs, holder, priority),
            },
            Some(_) => self.take_uncommon(costs, holder, priority),
        }
    }

    /// The lease, told of. It comes first: should the observer panic, it gives back.
    #[cold]
    fn admit_watched(
        &self,
        at: Tick,
        costs: &Costs,
        holder: Option<NonZeroU64>,
        waited: Option<Duration>,
    ) -> Lease<'_> {
        let lease = Lease::new(self, at, costs, holder, waited);
        self.0.reporter.report(&Event::Allowed);
        lease
    }

    #[cold]
    fn take_uncommon(
        &self,
        costs: &Costs,
        holder: Option<NonZeroU64>,
        priority: Priority,
    ) -> Result<Tick, Box<Denial>> {
        self.0.cell.try_take(&self.0.clock, costs, self.term(holder), priority)
    }

    #[cold]
    fn denied(&self, costs: &Costs, denial: Box<Denial>) -> Result<Attempt<'_>, AcquireError> {
        self.check_possible(costs)?;
        if self.0.reporter.is_watched() {
            let slowest = denial.limited_by();
            self.0
                .reporter
                .report(&Event::Denied { limit: slowest.as_ref().map(|status| status.limit().name()) });
        }
        Ok(Attempt::Denied(denial))
    }

    /// Waits until the demand is admitted, in the order of arrival. See [`Acquire`] for time-outs and priority.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves no trace.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Demand`] as for [`try_acquire`](LimitSet::try_acquire), [`AcquireError::TimedOut`] and
    /// [`AcquireError::QueueFull`].
    #[inline(always)]
    pub fn acquire<D: AsDemand>(&self, demand: D) -> Acquire<'_, D> {
        Acquire::new(self, demand)
    }

    /// When the demand would be admitted if it came now.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Demand`] as for [`try_acquire`](LimitSet::try_acquire).
    pub fn ready(&self, demand: impl AsDemand) -> Reply<'_, Result<Ready, AcquireError>> {
        let mut costs = Costs::none(self.0.names.len());
        let resolved = self.costs_into(&mut costs, &demand).map_err(AcquireError::from);
        Reply::ready(
            resolved
                .and_then(|()| self.check_possible(&costs))
                .map(|()| self.0.cell.ready(&self.0.clock, &costs, Priority::default())),
        )
    }

    /// How every limit stands, how many wait, and whether a cooldown lasts. Changes nothing.
    pub fn peek(&self) -> SetStatus {
        let (limits, waiting, cooling_until) = self.0.cell.snapshot(&self.0.clock);
        SetStatus { limits, waiting, cooling_until }
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.0.cell.limits()
    }

    /// Puts another limit in force in place of the one of the same name, at once.
    ///
    /// What was used is carried over: a lowered limit clamps, a raised one mints nothing. Waiters that now fit
    /// pass, and those that never will any more are told.
    ///
    /// # Errors
    ///
    /// A limit that is not valid, that has no namesake in the set, or that counts something else.
    pub fn replace<L>(&self, limit: L) -> Result<(), LimitsError>
    where
        L: TryInto<Limit>,
        LimitError: From<L::Error>,
    {
        let limit = limit.try_into().map_err(LimitError::from)?;
        let _changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = self.0.cell.limits().replacing(limit)?;
        self.0.cell.replace_limits(&self.0.clock, limits);
        Ok(())
    }

    /// Admits nobody for `duration`: the provider said "not now". Extends a cooldown, never shortens one.
    pub fn cool_down(&self, duration: Duration) {
        let now = self.0.clock.now();
        let until = now + Span::covering(duration);
        let lasts_longer = self.0.cell.cooling_until(&self.0.clock).unwrap_or(now) < until;
        self.0.cell.cool_down(&self.0.clock, until);
        if lasts_longer {
            self.0.reporter.report(&Event::Cooldown { duration });
        }
    }

    /// Ends a cooldown before its time: whoever said "not now" has changed their mind.
    pub fn end_cool_down(&self) {
        self.0.cell.end_cool_down(&self.0.clock);
    }

    /// What the set says about itself.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The clock it goes by.
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    #[inline]
    pub(crate) fn cell(&self) -> &Arc<Cell> {
        &self.0.cell
    }

    #[inline]
    pub(crate) fn names(&self) -> &Limits {
        &self.0.names
    }

    pub(crate) fn on_drop(&self) -> OnDrop {
        self.0.on_drop
    }

    pub(crate) fn reporter(&self) -> &Reporter {
        &self.0.reporter
    }

    #[inline(always)]
    fn costs_into(&self, costs: &mut Costs, demand: &impl AsDemand) -> Result<(), DemandError> {
        self.0.names.resolve_into(costs, demand, |name| self.skip_unknown(name))
    }

    /// What to do about a name that is no limit of the set: skip it with a word, unless the set is strict.
    #[cold]
    pub(crate) fn skip_unknown(&self, name: &str) -> Result<(), DemandError> {
        if self.0.strict {
            return Err(self.0.names.unknown(name));
        }
        self.0.reporter.report(&Event::UnknownLimit { name });
        Ok(())
    }

    /// Tells a demand that was denied for now from one that can never pass.
    #[cold]
    fn check_possible(&self, costs: &Costs) -> Result<(), AcquireError> {
        self.0.cell.limits().impossible(costs).map_or(Ok(()), |why| Err(why.into()))
    }

    /// A holder for the resources of a lease, if they can expire.
    #[inline]
    fn next_holder(&self) -> Option<NonZeroU64> {
        self.0.lease_ttl?;
        NonZeroU64::new(self.0.holders.fetch_add(1, Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn term(&self, holder: Option<NonZeroU64>) -> Option<Term> {
        Some(Term { holder: holder?.get().into(), ttl: self.0.lease_ttl? })
    }

    /// Whether a lease that is dropped without a word has anything to end.
    #[inline]
    pub(crate) fn ends_leases(&self) -> bool {
        self.0.ends_leases
    }
}

/// Without the values of the config, which may be secret.
impl fmt::Debug for LimitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config: Vec<&String> = self.0.config.keys().collect();
        f.debug_struct("LimitSet")
            .field("limits", &self.limits())
            .field("config", &config)
            .finish_non_exhaustive()
    }
}
