//! The limiter: entities, each with the limits that are stored for it, charged together with their parents.
//!
//! A call names who pays, for what, and how much. The limits are looked up: those of the entity for the resource, its
//! default, those of the resource, those of the system, and the first level that has any wins whole. An entity that
//! cascades is charged together with its parent, and on up, all or nothing.

mod acquire;
mod builder;
mod chain_status;
mod error;
mod inspect;
mod lease;
mod pinned;
mod plan;
mod planner;
mod route;
mod settle;
mod ticket;
mod ticket_text;
mod unavailable;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate_catalog::{Catalog, CatalogError, EntityChain, OnUnavailable, Registry};
use tollgate_core::{AsDemand, Span};
use tollgate_store::{Backend, Clock, Memory, PerProcess, Reply, generation};

use crate::observe::Reporter;
use crate::store_client::StoreClient;
use crate::{Acquire, OnDrop, TryAcquire};

pub use acquire::EntityDemand;
pub use builder::{Heartbeats, LEASE_TTL, LimiterBuilder, STORE_TIMEOUT};
pub use chain_status::{ChainStatus, LinkStatus};
pub use error::LimiterError;
pub use lease::LimiterLease;
pub use plan::RESOURCES_MAX;
pub use settle::LeaseEnd;
pub use ticket::{TicketEnd, TicketError};

/// Decides for entities whose limits are stored. Cloning shares it.
///
/// ```
/// use tollgate::{demand, Level, Limit, Limiter, Limits, NewEntity};
///
/// let limiter = Limiter::in_memory()?;
/// let catalog = limiter.catalog();
/// let limits = |tpm| Limits::new([Limit::per_minute("tpm", tpm)]);
/// catalog.create_entity(NewEntity::new("project")).wait()?;
/// catalog.create_entity(NewEntity::new("key-1").parent("project").cascades(true)).wait()?;
/// catalog.set_limits(Level::Entity("project"), &limits(100)?).wait()?;
/// catalog.set_limits(Level::Entity("key-1"), &limits(80)?).wait()?;
///
/// let lease = limiter.acquire("key-1", "gpt-4", demand! { tpm: 60 }).wait()?;
/// lease.commit().wait()?;
/// let denied = limiter.try_acquire("key-1", "gpt-4", demand! { tpm: 60 }).wait()?.denied().unwrap();
/// let (whose, limit) = denied.limited_by().unwrap();
/// assert_eq!((whose.entity.as_str(), limit.available()), ("key-1", 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Limiter(Arc<LimiterShared>);

struct LimiterShared {
    catalog: Catalog,
    /// The namespace is the id of the catalog's, which is what buckets are kept under.
    store: StoreClient,
    /// The clock of the store. The fast path reads it without a call through the backend.
    clock: Clock,
    /// A process that was forked off finds its own: the buckets of its parent are not its own.
    routes: PerProcess<route::Routes>,
    reporter: Reporter,
    settings: LimiterSettings,
}

struct LimiterSettings {
    timeout: Duration,
    on_unavailable: Option<OnUnavailable>,
    local_share: u8,
    lease_ttl: Option<Span>,
    heartbeats: Heartbeats,
    on_drop: OnDrop,
    waiters_max: usize,
}

impl LimiterShared {
    #[inline]
    fn routes(&self) -> &route::Routes {
        self.routes.get(generation().into())
    }
}

/// The namespace that is used where none is named.
pub const DEFAULT_NAMESPACE: &str = "default";

impl Limiter {
    /// A limiter with everything in the memory of this process, in the namespace [`DEFAULT_NAMESPACE`].
    ///
    /// # Errors
    ///
    /// As [`open`](Limiter::open); in memory there is no reason to expect any.
    pub fn in_memory() -> Result<Limiter, CatalogError> {
        Limiter::open(Arc::new(Memory::default()), DEFAULT_NAMESPACE).wait()
    }

    /// A limiter on a store, in a namespace that is registered if it is new.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the namespace may be registered.
    ///
    /// # Errors
    ///
    /// A name that is not valid, a store that does not answer, or one of another version.
    pub fn open(backend: Arc<dyn Backend>, namespace: &str) -> Reply<'_, Result<Limiter, CatalogError>> {
        Reply::later(async move {
            let catalog = Registry::new(backend).open_or_register(namespace).await?;
            Ok(Limiter::builder(catalog).build())
        })
    }

    /// Settings to start from.
    pub fn builder(catalog: Catalog) -> LimiterBuilder {
        LimiterBuilder::new(catalog)
    }

    /// Entities, stored limits, audit and usage of its namespace.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// Takes the demand from the entity and, where it cascades, from its parents, all or nothing, now; or says which limit of
    /// which entity denies it, and when it would not. Never waits, and never overtakes callers that do.
    ///
    /// It is written when this answers, so that all callers see it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves nothing taken but what a lease that is dropped leaves.
    ///
    /// # Errors
    ///
    /// A demand that can never fit, an unknown limit, an entity or resource that is disabled, no limits at all; and a store
    /// that does not answer, if the policy is to block. A denial is not an error.
    #[inline(always)]
    pub fn try_acquire<'a, D>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        demand: D,
    ) -> TryAcquire<'a, Limiter, EntityDemand<'a, D>>
    where
        D: AsDemand + Send + Sync + 'a,
    {
        TryAcquire::new(self, EntityDemand::new(entity, resource, demand))
    }

    /// As [`try_acquire`](Limiter::try_acquire), but waits until it is admitted: in the order of arrival for each bucket, and
    /// for as long as the [timeout](Acquire::timeout) or the [deadline](Acquire::deadline) says, if there is one.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves no trace, and the next waiter is considered.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Limiter::try_acquire), [`LimiterError::TimedOut`] with the status of every limit of every entity, and
    /// [`LimiterError::QueueFull`].
    #[inline(always)]
    pub fn acquire<'a, D>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        demand: D,
    ) -> Acquire<'a, Limiter, EntityDemand<'a, D>>
    where
        D: AsDemand + Send + Sync + 'a,
    {
        Acquire::new(self, EntityDemand::new(entity, resource, demand))
    }

    /// How many callers of this process wait for buckets of the store.
    pub fn waiting(&self) -> usize {
        self.0.store.backend.wait_queues().waiting()
    }
}

impl LimiterShared {
    /// Returns whether a waiter is queued for a bucket of the chain.
    #[inline]
    fn is_waited_for(&self, chain: &EntityChain) -> bool {
        let queues = self.store.backend.wait_queues();
        !queues.is_empty()
            && chain.links.iter().any(|link| queues.has_waiter(&self.store.namespace, &link.key))
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("namespace", &self.0.catalog.namespace_name()).finish_non_exhaustive()
    }
}
