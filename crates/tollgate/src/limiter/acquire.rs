//! A call in the making: what is wanted, and how patiently.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use tollgate_catalog::ChainLink;
use tollgate_core::{AsDemand, Costs, Limits, Span, Tick};
use tollgate_store::{Priority, Reply};

use super::lease::{Lease, StoredGrant};
use super::plan::{AnyDemand, LimiterRequest, costs_of};
use super::route::{LocalBuckets, Route};
use super::{AcquireError, ChainStatus, Limiter};

type Boxed<'a> = Box<dyn AsDemand + Send + Sync + 'a>;

/// A demand on behalf of an entity: say more about it, then `.await` it in a task or `.wait()` for it in a thread.
///
/// ```
/// use tollgate::{demand, Level, Limit, Limiter, Limits};
///
/// let limiter = Limiter::in_memory()?;
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// limiter.catalog().set_system_limits(&limits, None).wait()?;
///
/// // Two resources, all or nothing.
/// let lease = limiter
///     .acquire("user-1", "gpt-4", demand! { rpm: 1 })
///     .also("embeddings", demand! { rpm: 2 })
///     .wait()?;
/// lease.commit().wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is taken until this is awaited or waited for"]
pub struct Acquire<'a, D> {
    limiter: &'a Limiter,
    entity: &'a str,
    resource: &'a str,
    demand: D,
    waits: bool,
    /// What is only said of some calls.
    more: Option<Box<More<'a>>>,
}

#[derive(Default)]
struct More<'a> {
    also: Vec<(&'a str, Boxed<'a>)>,
    limits: Option<Limits>,
    priority: Priority,
    deadline: Option<Tick>,
    detached: Option<Span>,
}

/// A demand that is taken now or not at all. See [`Limiter::try_acquire`].
#[must_use = "nothing is taken until this is awaited or waited for"]
pub struct TryAcquire<'a, D>(Acquire<'a, D>);

/// What came of trying: a lease, or why not.
#[derive(Debug)]
#[must_use = "a lease that is dropped at once gives back what was taken"]
pub enum Attempt<'a> {
    /// Admitted.
    Admitted(Lease<'a>),
    /// Refused: the status of every limit of every entity, and the exact wait. Nothing was taken.
    Refused(Box<ChainStatus>),
}

impl<'a> Attempt<'a> {
    /// The lease, if it was admitted.
    pub fn admitted(self) -> Option<Lease<'a>> {
        match self {
            Attempt::Admitted(lease) => Some(lease),
            Attempt::Refused(_) => None,
        }
    }

    /// Why it was refused, if it was.
    pub fn refused(self) -> Option<ChainStatus> {
        match self {
            Attempt::Admitted(_) => None,
            Attempt::Refused(standing) => Some(*standing),
        }
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> Acquire<'a, D> {
    #[inline(always)]
    pub(super) fn new(limiter: &'a Limiter, entity: &'a str, resource: &'a str, demand: D) -> Acquire<'a, D> {
        Acquire { limiter, entity, resource, demand, waits: false, more: None }
    }

    #[inline(always)]
    pub(super) fn patient(self) -> Acquire<'a, D> {
        Acquire { waits: true, ..self }
    }

    fn with(mut self, change: impl FnOnce(&mut More<'a>)) -> Acquire<'a, D> {
        change(self.more.get_or_insert_default());
        self
    }

    /// Takes of another resource as well, all or nothing. At most [`RESOURCES_MAX`](super::RESOURCES_MAX) in all.
    pub fn also(self, resource: &'a str, demand: impl AsDemand + Send + Sync + 'a) -> Acquire<'a, D> {
        self.with(|more| more.also.push((resource, Box::new(demand))))
    }

    /// Limits in place of those that are stored for the entity and the resource, for this call: also for a bucket that
    /// was used under others. What is lowered clamps, and what is raised again mints nothing.
    pub fn limits(self, limits: Limits) -> Acquire<'a, D> {
        self.with(|more| more.limits = Some(limits))
    }

    /// Who goes first among those who wait.
    pub fn priority(self, priority: Priority) -> Acquire<'a, D> {
        self.with(|more| more.priority = priority)
    }

    /// Waits no longer than this, counted from now, also if the call would not wait otherwise. If the wait cannot fit,
    /// the error is returned at once.
    pub fn timeout(self, timeout: Duration) -> Acquire<'a, D> {
        let deadline = self.limiter.0.clock.now() + Span::covering(timeout);
        self.deadline(deadline)
    }

    /// Waits no later than this, also if the call would not wait otherwise. If the wait cannot fit, the error is
    /// returned at once.
    pub fn deadline(self, deadline: Tick) -> Acquire<'a, D> {
        self.patient().with(|more| more.deadline = Some(deadline))
    }

    /// Takes it for a holder that is no process: what it holds of resources is free after `ttl` unless it is settled
    /// before, whichever process lives or dies meanwhile. For leases that are passed on as a
    /// [ticket](Lease::into_ticket).
    pub fn detached(self, ttl: Duration) -> Acquire<'a, D> {
        let ttl = Span::covering(ttl.max(Duration::from_micros(1)));
        self.with(|more| more.detached = Some(ttl))
    }

    /// Takes it, in this thread, with no runtime.
    ///
    /// # Errors
    ///
    /// As [`Limiter::acquire`].
    #[inline]
    pub fn wait(self) -> Result<Lease<'a>, AcquireError> {
        match self.take_pinned() {
            Some(lease) => Ok(lease),
            None => self.acquire_slow().wait(),
        }
    }

    /// Takes it and calls `work` with the lease; what `work` answers decides what becomes of the lease. If it fails,
    /// panics or is cancelled, everything is given back.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves nothing taken.
    ///
    /// # Errors
    ///
    /// As [`Limiter::acquire`], or what `work` answers.
    pub async fn run<T, E, F>(self, work: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&mut Lease<'a>) -> Result<T, E>,
        E: From<AcquireError> + From<super::LeaseError>,
    {
        let mut lease = self.await?;
        let answer = work(&mut lease).await?;
        lease.commit().await?;
        Ok(answer)
    }

    /// The common case: one bucket in this process whose limits are known, with no waiter. `None` if it is another, or
    /// if there is something to say that the long way says better.
    #[inline]
    fn take_pinned(&self) -> Option<Lease<'a>> {
        let shared = &*self.limiter.0;
        if self.more.is_some() || shared.reporter.is_watched() {
            return None;
        }
        let route = shared.routes().get(self.entity, self.resource)?;
        if !shared.catalog.is_current(&route.chain, shared.clock.now()) || shared.is_waited_for(&route.chain)
        {
            return None;
        }
        let Some(pin) = route.only_pin() else { return self.take_pinned_chain(route) };
        let limits = &route.chain.links[0].limits;
        if limits.have_resources() && shared.settings.lease_ttl.is_some() {
            return None;
        }
        let mut costs = Costs::none(limits.len());
        limits.resolve_into(&mut costs, &self.demand, |name| Err(limits.unknown(name))).ok()?;
        let few = costs.few()?;
        let packed = few.pack()?;
        let at = pin.cell.take_plain_under(&shared.clock, limits, &few)?;
        pin.count_take(at, limits, &costs);
        Some(Lease::pinned(self.limiter, route, at, packed))
    }

    /// The same for an entity that cascades, if all buckets of the chain are in this process.
    #[inline(never)]
    fn take_pinned_chain(&self, route: Arc<Route>) -> Option<Lease<'a>> {
        let shared = &*self.limiter.0;
        let LocalBuckets { pins, cells } = route.pins.as_ref()?;
        let links = &route.chain.links;
        let expires = shared.settings.lease_ttl.is_some();
        let is_uncommon =
            |link: &ChainLink| link.limits.have_remarks() || expires && link.limits.have_resources();
        if links.iter().any(is_uncommon) {
            return None;
        }
        let costs = |(index, link): (usize, &ChainLink)| costs_of(&link.limits, index, &self.demand).ok();
        let costs: Vec<Costs> = links.iter().enumerate().map(costs).collect::<Option<_>>()?;
        let at = cells.as_ref()?.take_under(&shared.clock, links.iter().map(|link| &link.limits), &costs)?;
        for (((pin, link), costs), at) in pins.iter().zip(links).zip(&costs).zip(at) {
            pin.count_take(at, &link.limits, costs);
        }
        Some(Lease::stored(self.limiter, StoredGrant::of_route(&route, costs, &at), None))
    }

    #[cold]
    fn acquire_slow(self) -> Reply<'a, Result<Lease<'a>, AcquireError>> {
        Reply::later(async move {
            let Acquire { limiter, entity, resource, demand, waits, more } = self;
            let More { also, limits, priority, deadline, detached } =
                more.map(|more| *more).unwrap_or_default();
            let mut demands: Vec<(&str, AnyDemand<'_>)> = vec![(resource, &demand)];
            demands.extend(also.iter().map(|(name, demand)| (*name, &**demand as AnyDemand<'_>)));
            let request = LimiterRequest {
                entity,
                demands,
                limits: limits.as_ref(),
                priority,
                deadline,
                waits,
                detached,
            };
            limiter.take(&request).await
        })
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> IntoFuture for Acquire<'a, D> {
    type Output = Result<Lease<'a>, AcquireError>;
    type IntoFuture = Reply<'a, Self::Output>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        match self.take_pinned() {
            Some(lease) => Reply::ready(Ok(lease)),
            None => self.acquire_slow(),
        }
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> TryAcquire<'a, D> {
    pub(super) fn new(acquire: Acquire<'a, D>) -> TryAcquire<'a, D> {
        TryAcquire(acquire)
    }

    /// As [`Acquire::also`].
    pub fn also(self, resource: &'a str, demand: impl AsDemand + Send + Sync + 'a) -> TryAcquire<'a, D> {
        TryAcquire(self.0.also(resource, demand))
    }

    /// As [`Acquire::limits`].
    pub fn limits(self, limits: Limits) -> TryAcquire<'a, D> {
        TryAcquire(self.0.limits(limits))
    }

    /// Tries, in this thread, with no runtime.
    ///
    /// # Errors
    ///
    /// As [`Limiter::try_acquire`].
    #[inline]
    pub fn wait(self) -> Result<Attempt<'a>, AcquireError> {
        attempted(self.0.wait())
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> IntoFuture for TryAcquire<'a, D> {
    type Output = Result<Attempt<'a>, AcquireError>;
    type IntoFuture = Reply<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let lease = self.0.into_future();
        Reply::later(async move { attempted(lease.await) })
    }
}

fn attempted(taken: Result<Lease<'_>, AcquireError>) -> Result<Attempt<'_>, AcquireError> {
    match taken {
        Ok(lease) => Ok(Attempt::Admitted(lease)),
        Err(AcquireError::Refused(standing)) => Ok(Attempt::Refused(standing)),
        Err(error) => Err(error),
    }
}
