//! Limit sets: several limits taken together.

mod acquire;
mod backing;
mod builder;
mod remote;
mod status;
mod stored;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tollgate_core::{
    AsDemand, Costs, Demand, DemandError, Denial, Limit, LimitError, Limits, LimitsError, Packed, Ready,
    SmallCosts, Span, Tick, UNBOUNDED,
};
use tollgate_store::{BucketCell, Clock, Key, LeaseTerm, Priority, Reach, Reply, StoreError, Taken};

use crate::admission::WaitPolicy;
use crate::observe::Reporter;
use crate::{Acquire, AcquireError, Attempt, Config, Event, Lease, OnDrop, ReplaceError, TryAcquire};

pub(crate) use backing::Backing;
use backing::SetAddress;
pub(crate) use remote::{InForce, StoredBacking};

pub use acquire::Acquiring;
pub use builder::{LimitSetBuilder, SETS_NAMESPACE};
pub use status::SetStatus;
pub use stored::{StoredSet, StoredSets};

/// Several limits that are taken together or not at all. Cloning shares the set.
///
/// What a demand takes:
/// 1. What it names, as much as it asks. 0 is fine.
/// 2. One of each call limit and each resource that it does not name.
/// 3. Nothing of rates and quotas that it does not name; but a demand that names nothing at all must not leave
///    any out.
///
/// A name that is no limit of the set is an error that lists the names there are, unless the set
/// [skips](LimitSetBuilder::skip_unknown) them.
///
/// A set lives in this process, or in any store: all callers that [open](LimitSetBuilder::store) the same store,
/// namespace and name share it. What it says and does is the same there, with what a store brings along:
///
/// - Waiters of one process are served in the order of their arrival. Those of several are not, unless their store has
///   one queue for all: each process asks again when its time has come.
/// - Resources of a holder that died are free after [`lease_ttl`](LimitSetBuilder::lease_ttl), or as soon as the store
///   sees that its process is gone. While it lives, a lease renews them by itself.
/// - Programs that open it with other limits share them by name. A limit that one of them does not name stays in force,
///   with its state, for those that do, and a demand takes only of limits that its own program names. Of two that give
///   one name other numbers, the later [version](LimitSetBuilder::version) decides, and of one version the last to open
///   the set. A limit goes only on purpose: see [`remove`](LimitSet::remove) and
///   [`without`](LimitSetBuilder::without).
///
/// ```
/// use tollgate::{demand, Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::per_minute("rpm", 500), Limit::resource("connections", 16)])?;
/// let lease = set.acquire(demand! { rpm: 1 }).wait()?;
/// // ... call the API ...
/// lease.settle(demand! { rpm: 1 }).wait()?;
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone)]
pub struct LimitSet(Arc<SetShared>);

struct SetShared {
    address: SetAddress,
    /// Names and places never change in this process; the numbers in force are the cell's.
    names: Limits,
    clock: Clock,
    config: Config,
    reporter: Reporter,
    skips_unknown: bool,
    on_drop: OnDrop,
    /// Whether a lease that is dropped has anything to end.
    ends_leases: bool,
    lease_ttl: Option<Span>,
    holders: AtomicU64,
    waiters_max: usize,
    /// Held while limits are replaced: the new ones are made from the old, and no change may be lost between.
    changing: Mutex<()>,
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

    /// Takes the demand now, or denies it with the wait. Never waits, and never overtakes waiters.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Demand`] for a demand that can never fit or is not valid. A denial is not an error.
    #[inline(always)]
    pub fn try_acquire<D: AsDemand>(&self, demand: D) -> TryAcquire<'_, LimitSet, D> {
        TryAcquire::new(self, demand)
    }

    #[inline(always)]
    fn try_local(
        &self,
        cell: &Arc<BucketCell>,
        demand: &impl AsDemand,
        priority: Priority,
    ) -> Result<Attempt<Lease<'_>>, AcquireError> {
        let mut taken = Packed::default();
        match self.take_fast(cell, demand, &mut taken) {
            Some(at) => Ok(Attempt::Admitted(Lease::bare(self, at, taken))),
            None => self.try_slow(cell, demand, priority),
        }
    }

    #[cold]
    fn try_slow(
        &self,
        cell: &Arc<BucketCell>,
        demand: &impl AsDemand,
        priority: Priority,
    ) -> Result<Attempt<Lease<'_>>, AcquireError> {
        let (costs, holder) = (self.costs_of(demand)?, self.next_holder());
        match cell.try_take(&self.0.clock, &costs, self.term(holder), priority) {
            Ok(taken) => Ok(Attempt::Admitted(self.admit(taken, &costs, holder))),
            Err(denial) => self.denied(cell, &costs, denial),
        }
    }

    #[cold]
    fn try_stored<'a>(
        &'a self,
        remote: &'a StoredBacking,
        demand: &impl AsDemand,
        priority: Priority,
    ) -> Reply<'a, Result<Attempt<Lease<'a>>, AcquireError>> {
        let policy = WaitPolicy::at_once(priority);
        Reply::later(self.acquire_stored(remote, Demand::copy_of(demand), policy))
    }

    /// Takes the demand if it is an ordinary one: of few limits in this process that have no waiter, with nothing that
    /// expires, and no observer to notify. Otherwise it changes nothing and returns `None`, and the general path decides.
    ///
    /// It writes what is taken before the bucket is locked, and returns the rest in registers, so that the caller makes the
    /// lease in its place: reading words that were written in other pieces a moment before stalls the processor.
    #[inline]
    fn take_fast(&self, cell: &BucketCell, demand: &impl AsDemand, taken: &mut Packed) -> Option<Tick> {
        let set = &*self.0;
        if set.names.len() > SmallCosts::LIMITS || set.lease_ttl.is_some() || set.reporter.is_watched() {
            return None;
        }
        let mut costs = SmallCosts::default();
        set.names.resolve_into(&mut costs, demand, |name| self.skip_unknown(name)).ok()?;
        *taken = costs.pack()?;
        cell.take_plain(&set.clock, &costs)
    }

    #[inline(never)]
    fn costs_of(&self, demand: &impl AsDemand) -> Result<Costs, DemandError> {
        self.0.names.resolve(demand, |name| self.skip_unknown(name))
    }

    /// Reports the lease and returns it. It is made first: should the observer panic, it is dropped, and frees its resources.
    #[cold]
    fn admit(&self, taken: Taken, costs: &Costs, holder: Option<NonZeroU64>) -> Lease<'_> {
        let lease = Lease::new(self, taken, costs, holder, None);
        self.0.reporter.report_if_watched(&Event::Allowed);
        self.report_warnings(taken);
        lease
    }

    fn report_warnings(&self, taken: Taken) {
        self.names().warned(taken.warnings).for_each(|limit| self.0.reporter.report_warning(limit));
    }

    #[cold]
    fn denied(
        &self,
        cell: &Arc<BucketCell>,
        costs: &Costs,
        denial: Box<Denial>,
    ) -> Result<Attempt<Lease<'_>>, AcquireError> {
        check_possible(cell, costs)?;
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
    pub fn acquire<D: AsDemand>(&self, demand: D) -> Acquire<'_, LimitSet, D> {
        Acquire::new(self, demand)
    }

    /// Returns when the demand would be admitted if it came now.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Demand`] as for [`try_acquire`](LimitSet::try_acquire), and [`AcquireError::Store`].
    pub fn ready(&self, demand: impl AsDemand) -> Reply<'_, Result<Ready, AcquireError>> {
        match self.backing() {
            Backing::Local(cell) => Reply::ready(self.ready_here(cell, &demand)),
            Backing::Stored(remote) => {
                let wanted = Demand::copy_of(&demand);
                Reply::later(async move { remote.ready(self, &wanted).await })
            }
        }
    }

    fn ready_here(&self, cell: &Arc<BucketCell>, demand: &impl AsDemand) -> Result<Ready, AcquireError> {
        let costs = self.costs_of(demand)?;
        check_possible(cell, &costs)?;
        Ok(cell.ready(&self.0.clock, &costs, Priority::default()))
    }

    /// Returns the status of every limit, the number of waiters (of this process, if the set is in a store) and the cooldown.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// The store could not answer. A set in this process always does.
    pub fn peek(&self) -> Reply<'_, Result<SetStatus, StoreError>> {
        match self.backing() {
            Backing::Local(cell) => {
                let (limits, waiting, cooling_until) = cell.snapshot(&self.0.clock);
                Reply::ready(Ok(SetStatus { limits, waiting, cooling_until }))
            }
            Backing::Stored(remote) => Reply::later(remote.status()),
        }
    }

    /// Returns the limits in force; of a set in a store, those that all of its programs have named, as far as they are cached.
    pub fn limits(&self) -> Limits {
        match self.backing() {
            Backing::Local(cell) => cell.limits(),
            Backing::Stored(remote) => remote.in_force().limits.without_cooldown(),
        }
    }

    /// The limit in force of this name; of a set in a store, as far as it is cached here.
    ///
    /// ```
    /// use tollgate::{Limit, LimitSet};
    ///
    /// let set = LimitSet::new([Limit::per_minute("rpm", 500).burst(50), Limit::resource("connections", 8)])?;
    /// assert_eq!(set.limit("rpm").map(|limit| limit.capacity()), Some(50));
    /// assert_eq!(set.limit("tpm"), None);
    /// # Ok::<(), tollgate::LimitsError>(())
    /// ```
    pub fn limit(&self, name: &str) -> Option<Limit> {
        let limits = self.limits();
        limits.index(name).map(|index| limits[index].clone())
    }

    /// Puts another limit in force in place of the one of the same name, at once, for all callers that share the set.
    ///
    /// What was used is carried over: a lowered limit clamps, a raised one mints nothing. Waiters that now fit pass,
    /// and those that never will any more get an error. Others who have opened the set in a store learn of it with
    /// their next call. It holds until the next replacement, or until a program opens the set with a later
    /// [version](LimitSetBuilder::version).
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has happened, or been sent to the store. A set in a store that was not used
    /// before is opened first, and that has to be awaited.
    ///
    /// # Errors
    ///
    /// A limit that is not valid, that has no namesake in the set, or that counts something else; a store that did not
    /// answer.
    pub fn replace<L>(&self, limit: L) -> Reply<'_, Result<(), ReplaceError>>
    where
        L: TryInto<Limit>,
        LimitError: From<L::Error>,
    {
        let limit = match limit.try_into().map_err(LimitError::from) {
            Ok(limit) => limit,
            Err(error) => return Reply::ready(Err(LimitsError::from(error).into())),
        };
        match self.backing() {
            Backing::Local(cell) => Reply::ready(self.replace_here(cell, limit).map_err(ReplaceError::from)),
            Backing::Stored(remote) => Reply::eager(remote.replace(limit)),
        }
    }

    fn replace_here(&self, cell: &Arc<BucketCell>, limit: Limit) -> Result<(), LimitsError> {
        let _changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = cell.limits().replacing(limit)?;
        cell.replace_limits(&self.0.clock, limits);
        Ok(())
    }

    /// Removes a limit, at once, for all programs that share the set: it refuses nothing any more.
    ///
    /// In a store it does not come back with programs that name it still, unless they are of a later
    /// [version](LimitSetBuilder::version). A set in this process keeps its place, without a bound.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitSet};
    ///
    /// let set = LimitSet::new([Limit::per_minute("rpm", 100), Limit::per_day("budget", 1)])?;
    /// assert!(set.try_acquire(demand! { rpm: 1, budget: 1 }).wait()?.is_admitted());
    /// assert!(!set.try_acquire(demand! { rpm: 1, budget: 1 }).wait()?.is_admitted());
    /// set.remove("budget").wait()?;
    /// assert!(set.try_acquire(demand! { rpm: 1, budget: 1 }).wait()?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// As [`replace`](LimitSet::replace).
    ///
    /// # Errors
    ///
    /// There is no limit of that name, or the store did not answer.
    pub fn remove(&self, limit: &str) -> Reply<'_, Result<(), ReplaceError>> {
        match self.backing() {
            Backing::Local(cell) => Reply::ready(self.remove_here(cell, limit).map_err(ReplaceError::from)),
            Backing::Stored(remote) => Reply::eager(remote.remove(limit.into())),
        }
    }

    fn remove_here(&self, cell: &Arc<BucketCell>, name: &str) -> Result<(), LimitsError> {
        // Places never change here, because leases and demands are counted in them.
        match self.0.names.index(name) {
            Some(index) => self.replace_here(cell, self.0.names[index].without_bound()),
            // What is no name at all is refused by the limit that would have it.
            None => Err(LimitsError::Unknown(Limit::resource(name, UNBOUNDED).build()?.name().clone())),
        }
    }

    /// Admits no caller for `duration`: the provider said "not now". Extends a cooldown, never shortens one. It holds
    /// for all callers that share the set.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has happened, or been sent to the store.
    ///
    /// # Errors
    ///
    /// The store could not answer.
    pub fn cool_down(&self, duration: Duration) -> Reply<'_, Result<(), StoreError>> {
        let span = Span::covering(duration);
        match self.backing() {
            Backing::Local(cell) => {
                let now = self.0.clock.now();
                let until = now + span;
                let lasts_longer = cell.cooling_until(&self.0.clock).unwrap_or(now) < until;
                cell.cool_down(&self.0.clock, until);
                if lasts_longer {
                    self.0.reporter.report(&Event::Cooldown { duration });
                }
                Reply::ready(Ok(()))
            }
            Backing::Stored(remote) => Reply::eager(async move {
                if remote.cool_down(span).await? {
                    self.0.reporter.report(&Event::Cooldown { duration });
                }
                Ok(())
            }),
        }
    }

    /// Ends a cooldown before its time: the provider that said "not now" has changed its mind.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has happened, or been sent to the store.
    ///
    /// # Errors
    ///
    /// The store could not answer.
    pub fn end_cool_down(&self) -> Reply<'_, Result<(), StoreError>> {
        match self.backing() {
            Backing::Local(cell) => {
                cell.end_cool_down(&self.0.clock);
                Reply::ready(Ok(()))
            }
            Backing::Stored(remote) => Reply::eager(remote.end_cool_down()),
        }
    }

    /// Who shares the set, if they open it: the threads and tasks of this process, or all processes that reach its
    /// store.
    pub fn reach(&self) -> Reach {
        match self.backing() {
            Backing::Local(_) => Reach::Process,
            Backing::Stored(remote) => remote.store.backend.reach(),
        }
    }

    /// Its name in its store; `None` for a set in this process.
    pub fn name(&self) -> Option<&str> {
        match self.backing() {
            Backing::Local(_) => None,
            Backing::Stored(remote) => Some(&remote.name),
        }
    }

    /// Returns whether it is in a store and cooling, as far as that is cached: one that need not be asked first.
    pub(crate) fn is_said_to_cool(&self) -> bool {
        match self.backing() {
            Backing::Local(_) => false,
            Backing::Stored(remote) => remote.is_cooling(),
        }
    }

    /// How many wait, of those that this process knows of.
    pub(crate) fn waiting(&self) -> usize {
        match self.backing() {
            Backing::Local(cell) => cell.snapshot(&self.0.clock).1,
            Backing::Stored(remote) => remote.waiting(),
        }
    }

    /// Returns the config of the set.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The clock it goes by.
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    #[inline(always)]
    pub(crate) fn backing(&self) -> Backing<'_> {
        self.0.address.backing(&self.0.names)
    }

    pub(crate) fn lease_ttl(&self) -> Option<Span> {
        self.0.lease_ttl
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

    /// What to do about a name that is no limit of the set: refuse it, or skip it with a warning.
    #[cold]
    pub(crate) fn skip_unknown(&self, name: &str) -> Result<(), DemandError> {
        // A limit of the set that was removed since is nothing to speak of.
        if self.0.names.index(name).is_some() {
            return Ok(());
        }
        if !self.0.skips_unknown {
            return Err(self.0.names.unknown(name));
        }
        self.0.reporter.report(&Event::UnknownLimit { name });
        Ok(())
    }

    /// A holder for the resources of a lease, if they can expire.
    #[inline]
    fn next_holder(&self) -> Option<NonZeroU64> {
        self.0.lease_ttl?;
        NonZeroU64::new(self.0.holders.fetch_add(1, Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn term(&self, holder: Option<NonZeroU64>) -> Option<LeaseTerm> {
        Some(LeaseTerm { holder: holder?.get().into(), ttl: self.0.lease_ttl? })
    }

    /// Whether a lease that is dropped has anything to end.
    #[inline]
    pub(crate) fn ends_leases(&self) -> bool {
        self.0.ends_leases
    }
}

/// A cell of a set of which nothing was used.
fn fresh_cell(limits: &Limits) -> Arc<BucketCell> {
    BucketCell::new(Key::new::<&str>(&[]), limits.clone(), Tick::ZERO)
}

/// Tells a demand that was denied for now from one that can never pass.
#[cold]
fn check_possible(cell: &BucketCell, costs: &Costs) -> Result<(), AcquireError> {
    cell.limits().impossible(costs).map_or(Ok(()), |why| Err(why.into()))
}

/// Without the values of the config, which may be secret.
impl fmt::Debug for LimitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config: Vec<&String> = self.0.config.keys().collect();
        f.debug_struct("LimitSet")
            .field("name", &self.name())
            .field("limits", &self.limits())
            .field("config", &config)
            .finish_non_exhaustive()
    }
}
