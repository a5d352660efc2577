//! Taking from the buckets of an entity and its parents.

use std::sync::Arc;

use tollgate_core::Denial;
use tollgate_store::{LeaseTerm, Reach, StoreError};

use super::lease::{LimiterLease, StoredGrant};
use super::plan::{LimiterRequest, PlannedTake, chain_status};
use super::route::Route;
use super::ticket::detached_term;
use super::{ChainStatus, Limiter, LimiterError, LimiterShared};
use crate::admission::{AdmittedPlan, Decision, DeniedPlan, Planner, Takes, WaitPolicy, admit, behind};
use crate::lease::names_of;

/// Plans a request to a limiter: the buckets of the entity and its parents, for each resource.
pub(super) struct LimiterPlanner<'a> {
    pub(super) shared: &'a LimiterShared,
    pub(super) request: &'a LimiterRequest<'a>,
}

impl Planner for LimiterPlanner<'_> {
    type Plan = Vec<PlannedTake>;
    type Error = LimiterError;

    async fn plan(&self) -> Result<Vec<PlannedTake>, LimiterError> {
        let plan = self.shared.plan(self.request).await;
        if plan.as_ref().is_err_and(LimiterError::is_impossible) {
            self.shared.put_in_force(self.request).await;
        }
        plan
    }

    /// The catalog caches chains for a time of its own, so it is asked each time.
    fn is_current(&self, _: &Vec<PlannedTake>) -> bool {
        false
    }

    fn takes<'p>(&'p self, plan: &'p Vec<PlannedTake>) -> Vec<Takes<'p>> {
        plan.iter().map(PlannedTake::takes).collect()
    }

    async fn refresh(&self, plan: &Vec<PlannedTake>, step: usize) -> Result<(), LimiterError> {
        let Some(planned) = plan.get(step) else {
            return Err(
                StoreError::BadCall(format!("the store answered step {step} of {}", plan.len())).into()
            );
        };
        let resource = self.request.demands[planned.resource].0;
        self.shared.routes().forget(self.request.entity, resource);
        self.shared.catalog.refresh(planned.entity(), resource);
        Ok(())
    }

    fn term(&self, plan: &Vec<PlannedTake>) -> Option<LeaseTerm> {
        self.shared.term(self.request, plan)
    }

    /// A bucket that a route has cannot make room for another one.
    fn make_room(&self) -> bool {
        let is_local = self.shared.store.backend.reach() == Reach::Process;
        if is_local {
            self.shared.routes().clear();
        }
        is_local
    }
}

impl Limiter {
    /// Takes all that is requested, waits for that as `policy` says, or denies it.
    pub(super) async fn take(
        &self,
        request: &LimiterRequest<'_>,
        policy: WaitPolicy,
    ) -> Result<LimiterLease<'_>, LimiterError> {
        let shared = &*self.0;
        let planner = LimiterPlanner { shared, request };
        let answer = async {
            match admit(&shared.store, &planner, policy).await? {
                Decision::Admitted(admitted) => Ok(self.admit(&planner, admitted)),
                Decision::Denied(denied) => Err(shared.deny(request, policy, denied)),
            }
        };
        let fall_back = || Ok(self.fall_back(request));
        let is_unavailable = LimiterError::is_unavailable;
        shared.store.health.or_fall_back(&shared.clock, answer, is_unavailable, fall_back).await
    }

    fn admit(
        &self,
        planner: &LimiterPlanner<'_>,
        admitted: AdmittedPlan<Vec<PlannedTake>>,
    ) -> LimiterLease<'_> {
        let takes = planner.takes(&admitted.plan);
        let warnings = admitted.warnings(&takes);
        admitted.report(&self.0.reporter, &warnings);
        let warnings = names_of(warnings);
        self.0.pin_route(planner.request, &admitted.plan);
        let AdmittedPlan { plan, outcomes, term, waited, .. } = admitted;
        let stored = StoredGrant::new(&self.0, planner.request, &plan, &outcomes, term, warnings);
        LimiterLease::stored(self, stored, waited)
    }
}

impl LimiterShared {
    fn deny(
        &self,
        request: &LimiterRequest<'_>,
        policy: WaitPolicy,
        denied: DeniedPlan<Vec<PlannedTake>>,
    ) -> LimiterError {
        denied.report(&self.reporter);
        let status = chain_status(request, &denied.plan, denied.denials);
        match policy.waits {
            true => LimiterError::TimedOut { status, waited: denied.waited },
            false => LimiterError::Denied(status),
        }
    }

    /// Caches the buckets of a route, which exist now, so that the next call does not look them up.
    fn pin_route(&self, request: &LimiterRequest<'_>, plan: &[PlannedTake]) {
        let (Some(first), [(resource, _)], None) = (plan.first(), &*request.demands, request.limits) else {
            return;
        };
        let is_local = self.store.backend.reach() == Reach::Process;
        let unpinned = |route: &Arc<Route>| route.pins.is_none();
        if is_local && self.routes().get(request.entity, resource).as_ref().is_some_and(unpinned) {
            self.keep_route(request.entity, resource, Arc::clone(&first.chain));
        }
    }

    /// Returns how a request would fare behind the waiters that are queued, with nothing taken.
    pub(super) async fn evaluate(
        &self,
        request: &LimiterRequest<'_>,
        plan: &[PlannedTake],
        policy: WaitPolicy,
    ) -> Result<Box<ChainStatus>, StoreError> {
        let takes: Vec<Takes<'_>> = plan.iter().map(PlannedTake::takes).collect();
        let denials = self.store.evaluate(&takes).await?.into_iter();
        let behind = |(planned, denial): (&PlannedTake, Denial)| {
            behind(&*self.store.backend, &self.store.namespace, planned.key(), policy.priority, denial)
        };
        Ok(chain_status(request, plan, plan.iter().zip(denials).map(behind).collect()))
    }

    /// Returns for how long resources are held without a heartbeat of the holder, if the plan holds any.
    fn term(&self, request: &LimiterRequest<'_>, plan: &[PlannedTake]) -> Option<LeaseTerm> {
        let held = request.more_of.and_then(|lease| lease.term);
        if held.is_some() || !plan.iter().any(PlannedTake::holds_resources) {
            return held;
        }
        if let Some(ttl) = request.detached {
            return Some(detached_term(ttl));
        }
        let holder = self.settings.heartbeats.new_holder_id(&*self.store.backend);
        Some(LeaseTerm { holder, ttl: self.settings.lease_ttl? })
    }
}
