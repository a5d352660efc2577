//! The fixture of a law: a limiter on its own store, with a manual clock.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate::limiter::{ChainStatus, LimiterBuilder, LimiterError, LimiterLease};
use tollgate_catalog::{Catalog, Level, NewEntity, Registry};
use tollgate_core::{AsDemand, Limit, LimitBuilder, Limits, Span};
use tollgate_store::{Backend, ManualClock};

use crate::OpenBackend;
use crate::fixture::{FOREVER, UNEVEN_START, open_at};

/// A limiter with its store and its manual clock.
pub struct LimiterFixture {
    /// The clock of the store.
    pub clock: ManualClock,
    /// The store.
    pub backend: Arc<dyn Backend>,
    /// The limiter.
    pub limiter: Limiter,
}

impl LimiterFixture {
    /// Opens a store and a limiter on it.
    pub fn new(open: OpenBackend<'_>) -> LimiterFixture {
        LimiterFixture::with(open, |builder| builder)
    }

    /// Does the same with settings.
    pub fn with(
        open: OpenBackend<'_>,
        settings: impl FnOnce(LimiterBuilder) -> LimiterBuilder,
    ) -> LimiterFixture {
        let (clock, backend) = open_at(UNEVEN_START, open);
        LimiterFixture { limiter: limiter_on(&backend, settings), backend, clock }
    }

    /// Returns the catalog.
    pub fn catalog(&self) -> &Catalog {
        self.limiter.catalog()
    }

    /// Stores limits.
    pub fn set<const N: usize>(&self, level: Level<'_>, limits: [LimitBuilder; N]) {
        self.catalog().set_limits(level, &built(limits)).wait().expect("the limits of a law can be stored");
    }

    /// Creates an entity, which cascades to its parent if it has one.
    pub fn create(&self, entity: &str, parent: Option<&str>) {
        let new = NewEntity::new(entity);
        let new = parent.map_or(new.clone(), |parent| new.parent(parent).cascades(true));
        self.catalog().create_entity(new).wait().expect("the entities of a law can be made");
    }

    /// Returns the lease, if the demand is admitted now.
    pub fn take(&self, entity: &str, demand: impl AsDemand + Send + Sync) -> Option<LimiterLease<'static>> {
        let attempt = self.limiter.try_acquire(entity, RESOURCE, demand).wait();
        Some(attempt.expect("the demand of a law is valid").admitted()?.into_owned())
    }

    /// Takes a demand, which must be admitted, and commits it.
    pub fn spend(&self, entity: &str, demand: impl AsDemand + Send + Sync) {
        let lease = self.take(entity, demand).expect("there is room");
        lease.commit().wait().expect("the store answers");
    }

    /// Returns the status of a demand, which must be denied.
    pub fn refusal(&self, entity: &str, demand: impl AsDemand + Send + Sync) -> ChainStatus {
        let attempt = self.limiter.try_acquire(entity, RESOURCE, demand).wait().expect("the demand is valid");
        attempt.denied().expect("it is denied")
    }

    /// Returns what is available of a limit of an entity, without its parents.
    pub fn available(&self, entity: &str, limit: &str) -> i64 {
        let status = self.limiter.available(entity, RESOURCE).wait().expect("the store answers");
        let own =
            status.statuses().find(|(part, status)| part.entity == entity && status.limit().name() == limit);
        own.expect("the limit is there").1.available()
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, millis: u64) {
        self.clock.advance(Span::from_millis(millis));
    }
}

/// Returns the lease, if the demand is admitted now.
pub(super) fn take_now<'a>(
    limiter: &'a Limiter,
    entity: &'a str,
    resource: &'a str,
    demand: impl AsDemand + Send + Sync + 'a,
) -> Result<LimiterLease<'a>, LimiterError> {
    let attempt = limiter.try_acquire(entity, resource, demand).wait()?;
    attempt.into_result().map_err(LimiterError::Denied)
}

/// The resource of most calls.
pub(super) const RESOURCE: &str = "gpt-4";

/// Builds limits.
pub(super) fn built<const N: usize>(limits: [LimitBuilder; N]) -> Limits {
    let limits: Vec<Limit> =
        limits.into_iter().map(|limit| limit.build().expect("the limits of a law are valid")).collect();
    Limits::new(limits).expect("the limits of a law are valid")
}

/// Opens a limiter on a store, as another process would.
pub(super) fn limiter_on(
    backend: &Arc<dyn Backend>,
    settings: impl FnOnce(LimiterBuilder) -> LimiterBuilder,
) -> Limiter {
    let registry = Registry::new(Arc::clone(backend));
    let catalog = registry.open_or_register("default").wait().expect("a fresh store can be opened");
    settings(Limiter::builder(catalog).store_timeout(FOREVER)).build()
}
