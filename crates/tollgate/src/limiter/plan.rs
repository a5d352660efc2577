//! What a call will take, worked out before anything is asked of the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate_catalog::{CatalogError, ChainLink, EntityChain, LimitsSource};
use tollgate_core::{AsDemand, Costs, DemandError, Denial, Limits, Span};
use tollgate_store::{BucketRef, Key, LeaseTerm, Op, Priority, Step, TxnOutcome};

use super::chain_status::LinkStatus;
use super::route::Route;
use super::{ChainStatus, LimiterError, LimiterShared};
use crate::admission::{Takes, WaitPolicy};
use crate::timeout::with_timeout;

/// How many resources one call may take from.
pub const RESOURCES_MAX: usize = 8;

/// A demand whose kind does not matter.
pub(super) type AnyDemand<'r> = &'r (dyn AsDemand + Send + Sync);

/// What a caller wants.
pub(super) struct LimiterRequest<'r> {
    pub(super) entity: &'r str,
    /// The resource of the call first.
    pub(super) demands: Vec<(&'r str, AnyDemand<'r>)>,
    /// Limits that came with the call.
    pub(super) limits: Option<&'r Limits>,
    pub(super) patience: WaitPolicy,
    /// For how long a holder that is no process may be silent.
    pub(super) detached: Option<Span>,
}

impl<'r> LimiterRequest<'r> {
    /// A request that does not wait.
    pub(super) fn now(entity: &'r str, demands: Vec<(&'r str, AnyDemand<'r>)>) -> LimiterRequest<'r> {
        let patience = WaitPolicy::at_once(Priority::default());
        LimiterRequest { entity, demands, limits: None, patience, detached: None }
    }
}

/// What to take from one bucket.
#[derive(Clone)]
pub(super) struct PlannedTake {
    bucket: PlannedBucket,
    /// The place of the resource in the request.
    pub(super) resource: usize,
    /// Limits that came with the call.
    given: Option<Limits>,
    pub(super) costs: Costs,
}

/// Which bucket.
#[derive(Clone)]
enum PlannedBucket {
    /// Of a chain, the one at this place.
    Link(Arc<EntityChain>, usize),
    /// The one that a ticket names: its entity and its key.
    Named(Box<str>, Key),
}

impl PlannedTake {
    fn new(
        chain: &Arc<EntityChain>,
        link: usize,
        resource: usize,
        given: Option<Limits>,
        costs: Costs,
    ) -> PlannedTake {
        PlannedTake { bucket: PlannedBucket::Link(Arc::clone(chain), link), resource, given, costs }
    }

    fn link(&self) -> Option<&ChainLink> {
        match &self.bucket {
            PlannedBucket::Link(chain, link) => chain.links.get(*link),
            PlannedBucket::Named(..) => None,
        }
    }

    /// The chain it is a step of, if it is one.
    pub(super) fn chain(&self) -> Option<&Arc<EntityChain>> {
        match &self.bucket {
            PlannedBucket::Link(chain, _) => Some(chain),
            PlannedBucket::Named(..) => None,
        }
    }

    pub(super) fn entity(&self) -> &str {
        match &self.bucket {
            PlannedBucket::Link(chain, link) => &chain.links[*link].entity,
            PlannedBucket::Named(entity, _) => entity,
        }
    }

    pub(super) fn key(&self) -> &Key {
        match &self.bucket {
            PlannedBucket::Link(chain, link) => &chain.links[*link].key,
            PlannedBucket::Named(_, key) => key,
        }
    }

    pub(super) fn takes(&self) -> Takes<'_> {
        Takes { bucket: self.key(), limits: self.limits(), costs: &self.costs }
    }

    pub(super) fn limits(&self) -> &Limits {
        match (&self.given, &self.bucket) {
            (None, PlannedBucket::Link(chain, link)) => &chain.links[*link].limits,
            (given, _) => given.as_ref().expect("what is no link was given its limits"),
        }
    }

    fn source(&self) -> Option<LimitsSource> {
        self.link().filter(|_| self.given.is_none()).map(|link| link.source)
    }

    /// A step of a route that is the only one of its call.
    pub(super) fn of_route(route: &Route, link: usize, costs: Costs) -> PlannedTake {
        PlannedTake::new(&route.chain, link, 0, None, costs)
    }

    /// What a ticket says was taken.
    pub(super) fn redeemed(
        entity: &str,
        key: Key,
        resource: usize,
        limits: Limits,
        costs: Costs,
    ) -> PlannedTake {
        PlannedTake { bucket: PlannedBucket::Named(entity.into(), key), resource, given: Some(limits), costs }
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

    pub(super) fn place<'s>(&'s self, namespace: &'s str) -> BucketRef<'s> {
        BucketRef { namespace, key: self.key(), limits: self.limits() }
    }

    pub(super) fn take<'s>(&'s self, namespace: &'s str, term: Option<LeaseTerm>) -> Step<'s> {
        // Only who holds something can vanish with it.
        let term = term.filter(|_| self.holds_resources());
        Step { place: self.place(namespace), op: Op::Take { costs: &self.costs, term } }
    }

    pub(super) fn holds_resources(&self) -> bool {
        let limits = self.limits();
        limits.have_resources()
            && limits
                .iter()
                .zip(self.costs.amounts())
                .any(|(limit, amount)| limit.is_resource() && *amount > 0)
    }
}

impl LimiterShared {
    /// The route of a call, as it was found last or anew.
    pub(super) async fn route(&self, entity: &str, resource: &str) -> Result<Arc<Route>, CatalogError> {
        let is_current =
            |route: &Arc<Route>| !route.is_gone() && self.catalog.is_current(&route.chain, self.clock.now());
        if let Some(route) = self.routes().get(entity, resource).filter(is_current) {
            return Ok(route);
        }
        let chain =
            with_timeout(&self.clock, self.settings.timeout, self.catalog.chain(entity, resource)).await?;
        Ok(self.keep_route(entity, resource, chain))
    }

    /// Keeps what was found out. Buckets in this process are pinned, if they are there by now.
    pub(super) fn keep_route(&self, entity: &str, resource: &str, chain: Arc<EntityChain>) -> Arc<Route> {
        let pin = |link: &ChainLink| {
            let place = BucketRef { namespace: &self.namespace, key: &link.key, limits: &link.limits };
            self.backend.pin(&place)
        };
        let pins = chain.links.iter().map(pin).collect();
        let route = Arc::new(Route::new(entity, resource, chain, pins));
        self.routes().keep(Arc::clone(&route));
        route
    }

    /// Puts the stored limits in force that a demand can never fit: the store is asked once for each chain, and denies it.
    /// Otherwise limits that are lowered, refuse such a demand and are raised again would never have held for the bucket.
    pub(super) async fn heed(&self, request: &LimiterRequest<'_>) {
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
        // Every one is marked, also if the first is not new.
        let is_new = routes.iter().filter(|route| !route.is_heeded.swap(true, Ordering::AcqRel)).count() > 0;
        if is_new && !matches!(self.apply_takes(&plan, None, None).await, Ok(TxnOutcome::Denied(_))) {
            // The next one asks again. It decides nothing for this one, which fails in any case.
            routes.iter().for_each(|route| route.is_heeded.store(false, Ordering::Release));
        }
    }

    /// What the request takes from whom. Nothing has been asked of any bucket yet.
    pub(super) async fn plan(&self, request: &LimiterRequest<'_>) -> Result<Vec<PlannedTake>, LimiterError> {
        check_resources(&request.demands)?;
        let mut plan = Vec::new();
        for (resource, (name, demand)) in request.demands.iter().enumerate() {
            let given = request.limits.filter(|_| resource == 0);
            let chain: Arc<EntityChain> = match given {
                None => Arc::clone(&self.route(request.entity, name).await?.chain),
                Some(limits) => {
                    let chain = self.catalog.chain_with(request.entity, name, limits);
                    with_timeout(&self.clock, self.settings.timeout, chain).await?
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
                plan.push(PlannedTake::new(&chain, link, resource, given, costs));
            }
        }
        Ok(plan)
    }
}

/// A parent limits what it has limits for, and nothing else; the entity itself wants to know what is meant.
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

/// How the request stands, by what each bucket said of its step.
pub(super) fn standing(
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
