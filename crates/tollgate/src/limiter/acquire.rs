//! Demands on behalf of an entity.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use tollgate_core::{AsDemand, Limits, Span};
use tollgate_store::Reply;

use super::lease::LimiterLease;
use super::plan::{AnyDemand, LimiterRequest};
use super::{ChainStatus, Limiter, LimiterError};
use crate::acquire::WaitOptions;
use crate::admission::WaitPolicy;
use crate::{Acquire, Attempt, TryAcquire};

type Boxed<'a> = Box<dyn AsDemand + Send + Sync + 'a>;

/// A demand on behalf of an entity, which [`Limiter::acquire`] and [`Limiter::try_acquire`] make.
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
/// # Ok::<(), tollgate::Error>(())
/// ```
pub struct EntityDemand<'a, D> {
    entity: &'a str,
    resource: &'a str,
    demand: D,
    /// Settings that few calls have.
    more: Option<Box<More<'a>>>,
}

#[derive(Default)]
struct More<'a> {
    also: Vec<(&'a str, Boxed<'a>)>,
    limits: Option<Limits>,
    detached: Option<Span>,
}

impl<D: fmt::Debug> fmt::Debug for EntityDemand<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntityDemand { entity, resource, demand, .. } = self;
        f.debug_struct("EntityDemand")
            .field("entity", entity)
            .field("resource", resource)
            .field("demand", demand)
            .finish_non_exhaustive()
    }
}

/// The settings of both builders.
macro_rules! entity_settings {
    ($builder:ident) => {
        impl<'a, D: AsDemand + Send + Sync + 'a> $builder<'a, Limiter, EntityDemand<'a, D>> {
            fn with(mut self, change: impl FnOnce(&mut More<'a>)) -> Self {
                change(self.demand.more.get_or_insert_default());
                self
            }

            /// Takes of another resource as well, all or nothing. At most
            /// [`RESOURCES_MAX`](crate::limiter::RESOURCES_MAX) in all.
            pub fn also(self, resource: &'a str, demand: impl AsDemand + Send + Sync + 'a) -> Self {
                self.with(|more| more.also.push((resource, Box::new(demand))))
            }

            /// Limits in place of those that are stored for the entity and the resource, for this call: also for a bucket that
            /// was used under others. What is lowered clamps, and what is raised again mints nothing.
            pub fn limits(self, limits: Limits) -> Self {
                self.with(|more| more.limits = Some(limits))
            }

            /// Takes it for a holder that is no process: what it holds of resources is free after `ttl` unless it is settled
            /// before, whichever process lives or dies meanwhile. For leases that are passed on as a
            /// [ticket](LimiterLease::into_ticket).
            pub fn detached(self, ttl: Duration) -> Self {
                let ttl = Span::covering(ttl.max(Duration::from_micros(1)));
                self.with(|more| more.detached = Some(ttl))
            }
        }
    };
}

entity_settings!(TryAcquire);
entity_settings!(Acquire);

impl<'a, D: AsDemand + Send + Sync + 'a> Acquire<'a, Limiter, EntityDemand<'a, D>> {
    /// Waits in this thread, with no runtime, in the same queue as all waiters.
    ///
    /// # Errors
    ///
    /// As [`Limiter::acquire`].
    #[inline]
    pub fn wait(self) -> Result<LimiterLease<'a>, LimiterError> {
        match self.demand.take_local(self.source) {
            Some(lease) => Ok(lease),
            None => self.demand.take(self.source, self.source.wait_policy(&self.wait)).wait(),
        }
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> IntoFuture for Acquire<'a, Limiter, EntityDemand<'a, D>> {
    type Output = Result<LimiterLease<'a>, LimiterError>;
    type IntoFuture = Reply<'a, Self::Output>;

    /// Nothing is taken before the first poll: a future that is dropped without one leaves no trace.
    fn into_future(self) -> Self::IntoFuture {
        Reply::later(async move {
            match self.demand.take_local(self.source) {
                Some(lease) => Ok(lease),
                None => self.demand.take(self.source, self.source.wait_policy(&self.wait)).await,
            }
        })
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> TryAcquire<'a, Limiter, EntityDemand<'a, D>> {
    /// The answer.
    ///
    /// # Errors
    ///
    /// As [`Limiter::try_acquire`].
    #[inline]
    pub fn wait(self) -> Result<Attempt<LimiterLease<'a>, ChainStatus>, LimiterError> {
        match self.demand.take_local(self.source) {
            Some(lease) => Ok(Attempt::Admitted(lease)),
            None => attempted(self.demand.take(self.source, WaitPolicy::at_once(self.priority)).wait()),
        }
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> IntoFuture for TryAcquire<'a, Limiter, EntityDemand<'a, D>> {
    type Output = Result<Attempt<LimiterLease<'a>, ChainStatus>, LimiterError>;
    type IntoFuture = Reply<'a, Self::Output>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        match self.demand.take_local(self.source) {
            Some(lease) => Reply::ready(Ok(Attempt::Admitted(lease))),
            None => {
                let taken = self.demand.take(self.source, WaitPolicy::at_once(self.priority));
                Reply::later(async move { attempted(taken.await) })
            }
        }
    }
}

impl Limiter {
    /// Returns the policy of a caller whose wait begins now.
    fn wait_policy(&self, wait: &WaitOptions) -> WaitPolicy {
        wait.policy(&self.0.clock, self.0.settings.waiters_max)
    }
}

fn attempted(
    taken: Result<LimiterLease<'_>, LimiterError>,
) -> Result<Attempt<LimiterLease<'_>, ChainStatus>, LimiterError> {
    match taken {
        Ok(lease) => Ok(Attempt::Admitted(lease)),
        Err(LimiterError::Denied(status)) => Ok(Attempt::Denied(status)),
        Err(error) => Err(error),
    }
}

impl<'a, D: AsDemand + Send + Sync + 'a> EntityDemand<'a, D> {
    #[inline(always)]
    pub(super) fn new(entity: &'a str, resource: &'a str, demand: D) -> EntityDemand<'a, D> {
        EntityDemand { entity, resource, demand, more: None }
    }

    /// Takes from buckets of this process, if all are there; `None` if the store has to be asked.
    #[inline]
    fn take_local(&self, limiter: &'a Limiter) -> Option<LimiterLease<'a>> {
        if self.more.is_some() {
            return None;
        }
        limiter.take_pinned(self.entity, self.resource, &self.demand)
    }

    /// Takes the demand from the store, or denies it.
    #[cold]
    fn take(
        self,
        limiter: &'a Limiter,
        policy: WaitPolicy,
    ) -> Reply<'a, Result<LimiterLease<'a>, LimiterError>> {
        Reply::later(async move {
            let EntityDemand { entity, resource, demand, more } = self;
            let More { also, limits, detached } = more.map(|more| *more).unwrap_or_default();
            let mut demands: Vec<(&str, AnyDemand<'_>)> = vec![(resource, &demand)];
            demands.extend(also.iter().map(|(name, demand)| (*name, &**demand as AnyDemand<'_>)));
            let request =
                LimiterRequest { limits: limits.as_ref(), detached, ..LimiterRequest::new(entity, demands) };
            limiter.take(&request, policy).await
        })
    }
}
