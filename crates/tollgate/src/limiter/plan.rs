//! Plans: which buckets a call takes from, before the store is asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate_catalog::{CatalogError, ChainLink, EntityChain, LimitsSource};
use tollgate_core::{AsDemand, Costs, DemandError, Denial, Limits, Span};
use tollgate_store::{BucketRef, Key, LeaseTerm, Step, StepOutcome, StoreError, TxnOutcome};

use super::chain_status::LinkStatus;
use super::route::Route;
use super::{ChainStatus, LimiterError, LimiterShared};
use crate::admission::Takes;
use crate::reservation::ReservedTake;

/// How many resources one call may take from.
pub const RESOURCES_MAX: usize = 8;

/// A demand whose kind does not matter.
pub(super) type AnyDemand<'r> = &'r (dyn AsDemand + Send + Sync);

/// What a caller demands of a limiter.
pub(super) struct LimiterRequest<'r> {
    pub(super) entity: &'r str,
    /// The resource of the call first.
    pub(super) demands: Vec<(&'r str, AnyDemand<'r>)>,
    /// Limits that came with the call.
    pub(super) limits: Option<&'r Limits>,
    /// For how long a holder that is not a process may send no heartbeat.
    pub(super) detached: Option<Span>,
    /// The lease that takes more, if one does: then calls and resources are taken only if the demand names them.
    pub(super) more_of: Option<MoreOf>,
}

/// A lease that takes more.
#[derive(Clone, Copy)]
pub(super) struct MoreOf {
    pub(super) term: Option<LeaseTerm>,
    pub(super) is_detached: bool,
}

impl<'r> LimiterRequest<'r> {
    pub(super) fn new(entity: &'r str, demands: Vec<(&'r str, AnyDemand<'r>)>) -> LimiterRequest<'r> {
        LimiterRequest { entity, demands, limits: None, detached: None, more_of: None }
    }

    /// Returns the names of the resources.
    pub(super) fn resources(&self) -> Vec<Box<str>> {
        self.demands.iter().map(|(name, _)| (*name).into()).collect()
    }
}

/// A step of a plan: what to take from one bucket.
#[derive(Clone)]
pub(super) struct PlannedTake {
    pub(super) chain: Arc<EntityChain>,
    /// The place of the bucket in the chain.
    link: usize,
    /// The place of the resource in the request.
    pub(super) resource: usize,
    /// Limits that came with the call.
    given: Option<Limits>,
    pub(super) costs: Costs,
}

impl PlannedTake {
    fn new(
        chain: &Arc<EntityChain>,
        link: usize,
        resource: usize,
        given: Option<Limits>,
        costs: Costs,
    ) -> PlannedTake {
        PlannedTake { chain: Arc::clone(chain), link, resource, given, costs }
    }

    fn link(&self) -> &ChainLink {
        &self.chain.links[self.link]
    }

    pub(super) fn entity(&self) -> &str {
        &self.link().entity
    }

    pub(super) fn key(&self) -> &Key {
        &self.link().key
    }

    pub(super) fn takes(&self) -> Takes<'_> {
        Takes { bucket: self.key(), limits: self.limits(), costs: &self.costs }
    }

    fn limits(&self) -> &Limits {
        self.given.as_ref().unwrap_or(&self.link().limits)
    }

    fn source(&self) -> Option<LimitsSource> {
        self.given.is_none().then(|| self.link().source)
    }

    /// Returns what was taken, by the outcome of the step.
    pub(super) fn reserved(&self, outcome: Option<&StepOutcome>) -> ReservedTake {
        ReservedTake::new(self.takes(), self.resource, outcome)
    }

    /// A step under other limits than those of the chain.
    pub(super) fn under(
        chain: &Arc<EntityChain>,
        link: usize,
        resource: usize,
        limits: Limits,
        costs: Costs,
    ) -> PlannedTake {
        PlannedTake::new(chain, link, resource, Some(limits), costs)
    }

    pub(super) fn holds_resources(&self) -> bool {
        self.takes().holds_resources()
    }
}

impl LimiterShared {
    /// Returns the route of a call, from the cache or from the catalog.
    pub(super) async fn route(&self, entity: &str, resource: &str) -> Result<Arc<Route>, CatalogError> {
        let is_current =
            |route: &Arc<Route>| !route.is_gone() && self.catalog.is_current(&route.chain, self.clock.now());
        if let Some(route) = self.routes().get(entity, resource).filter(is_current) {
            return Ok(route);
        }
        let chain = self.store.bounded(self.catalog.chain(entity, resource)).await?;
        Ok(self.keep_route(entity, resource, chain))
    }

    /// Caches a route, with its buckets if they are in this process and exist by now.
    pub(super) fn keep_route(&self, entity: &str, resource: &str, chain: Arc<EntityChain>) -> Arc<Route> {
        let pin = |link: &ChainLink| {
            let place = BucketRef { namespace: &self.store.namespace, key: &link.key, limits: &link.limits };
            self.store.backend.pin(&place)
        };
        let pins = chain.links.iter().map(pin).collect();
        let route = Arc::new(Route::new(entity, resource, chain, pins));
        self.routes().keep(Arc::clone(&route));
        route
    }

    /// Puts the stored limits in force that a demand can never fit: the store is asked once for each chain, and denies it.
    /// Otherwise limits that are lowered, deny such a demand and are raised again would never have held for the bucket.
    pub(super) async fn put_in_force(&self, request: &LimiterRequest<'_>) {
        if request.limits.is_some() {
            return;
        }
        let (mut plan, mut routes) = (Vec::new(), Vec::new());
        for (resource, (name, demand)) in request.demands.iter().enumerate() {
            let Ok(route) = self.route(request.entity, name).await else { return };
            for (link, at) in route.chain.links.iter().enumerate() {
                let Ok(costs) = at.limits.resolve(demand, |_| Ok(())) else { return };
                plan.push(PlannedTake::new(&route.chain, link, resource, None, costs));
            }
            routes.push(route);
        }
        // All routes are marked, also if the first one was before.
        let is_new =
            routes.iter().filter(|route| !route.is_in_force.swap(true, Ordering::AcqRel)).count() > 0;
        let steps: Vec<Step<'_>> =
            plan.iter().map(|planned| planned.takes().step(&self.store, None)).collect();
        if is_new && !matches!(self.store.apply(&steps).await, Ok(TxnOutcome::Denied(_))) {
            // The next call asks again. This one fails in any case.
            routes.iter().for_each(|route| route.is_in_force.store(false, Ordering::Release));
        }
    }

    /// Plans the request. No bucket is asked yet.
    pub(super) async fn plan(&self, request: &LimiterRequest<'_>) -> Result<Vec<PlannedTake>, LimiterError> {
        check_resources(&request.demands)?;
        let mut plan = Vec::new();
        for (resource, (name, demand)) in request.demands.iter().enumerate() {
            let given = request.limits.filter(|_| resource == 0);
            let chain: Arc<EntityChain> = match given {
                None => Arc::clone(&self.route(request.entity, name).await?.chain),
                Some(limits) => {
                    let chain = self.catalog.chain_with(request.entity, name, limits);
                    self.store.bounded(chain).await?
                }
            };
            for link in 0..chain.links.len() {
                let given = given.filter(|_| link == 0).cloned();
                let limits = given.as_ref().unwrap_or(&chain.links[link].limits);
                let costs = costs_of(limits, link, demand).map_err(|why| LimiterError::Demand {
                    entity: chain.links[link].entity.clone(),
                    resource: (*name).into(),
                    why,
                })?;
                let costs = if request.more_of.is_some() { costs.named() } else { costs };
                plan.push(PlannedTake::new(&chain, link, resource, given, costs));
            }
        }
        self.check_more_of(request, &plan)?;
        Ok(plan)
    }
}

impl LimiterShared {
    /// Refuses resources to a detached lease that has no term: nothing would ever free them.
    fn check_more_of(&self, request: &LimiterRequest<'_>, plan: &[PlannedTake]) -> Result<(), StoreError> {
        let is_without_term = request.more_of.is_some_and(|lease| lease.is_detached && lease.term.is_none());
        let expires = self.settings.lease_ttl.is_some();
        if is_without_term && expires && plan.iter().any(PlannedTake::holds_resources) {
            let why =
                "a detached lease that holds no resource cannot take one later; acquire it with the rest";
            return Err(StoreError::BadCall(why.into()));
        }
        Ok(())
    }
}

/// Resolves a demand for one link of a chain. A parent limits what it has limits for, and ignores other names; for the entity
/// itself an unknown name is an error.
pub(super) fn costs_of(limits: &Limits, link: usize, demand: &impl AsDemand) -> Result<Costs, DemandError> {
    let unknown = |name: &str| if link == 0 { Err(limits.unknown(name)) } else { Ok(()) };
    let costs = limits.resolve(demand, unknown)?;
    let costs = if link == 0 { costs } else { costs.of_child() };
    limits.impossible(&costs).map_or(Ok(costs), Err)
}

fn check_resources(demands: &[(&str, AnyDemand<'_>)]) -> Result<(), LimiterError> {
    if demands.len() > RESOURCES_MAX {
        return Err(LimiterError::TooManyResources(demands.len()));
    }
    for (index, (name, _)) in demands.iter().enumerate() {
        if demands[..index].iter().any(|(other, _)| other == name) {
            return Err(LimiterError::ResourceTwice((*name).into()));
        }
    }
    Ok(())
}

/// Makes the status of the request out of the denial of each step.
pub(super) fn chain_status(
    request: &LimiterRequest<'_>,
    plan: &[PlannedTake],
    denials: Vec<Denial>,
) -> Box<ChainStatus> {
    let part = |(planned, denial): (&PlannedTake, Denial)| LinkStatus {
        entity: planned.entity().into(),
        resource: request.demands[planned.resource].0.into(),
        source: planned.source(),
        denial,
    };
    Box::new(ChainStatus { parts: plan.iter().zip(denials).map(part).collect() })
}
