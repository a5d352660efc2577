//! Taking from a set in a store.

use tollgate_core::{Costs, Demand, Denial};
use tollgate_store::{LeaseTerm, StoreError};

use super::{InForce, StoredBacking};
use crate::admission::{AdmittedPlan, Decision, DeniedPlan, Planner, Takes, WaitPolicy, admit};
use crate::lease::{Grant, names_of};
use crate::set::LimitSet;
use crate::{AcquireError, Attempt, Event, Lease};

/// Plans a demand on a set: its costs in the limits in force.
struct SetPlanner<'a, 'd> {
    set: &'a LimitSet,
    remote: &'a StoredBacking,
    demand: &'d Demand,
}

struct SetPlan {
    in_force: InForce,
    costs: Costs,
}

impl Planner for SetPlanner<'_, '_> {
    type Plan = SetPlan;
    type Error = AcquireError;

    async fn plan(&self) -> Result<SetPlan, AcquireError> {
        self.remote.open().await?;
        let (in_force, costs) = self.remote.possible_costs(self.set, self.demand).await?;
        Ok(SetPlan { in_force, costs })
    }

    fn is_current(&self, plan: &SetPlan) -> bool {
        self.remote.is_in_force(&plan.in_force.limits)
    }

    fn takes<'p>(&'p self, plan: &'p SetPlan) -> Vec<Takes<'p>> {
        vec![Takes { bucket: &self.remote.key, limits: &plan.in_force.limits, costs: &plan.costs }]
    }

    async fn refresh(&self, plan: &SetPlan, _: usize) -> Result<(), AcquireError> {
        Ok(self.remote.learn(Some(&plan.in_force.limits)).await?)
    }

    fn term(&self, plan: &SetPlan) -> Option<LeaseTerm> {
        let holds_resources = self.takes(plan).iter().any(Takes::holds_resources);
        let ttl = self.set.lease_ttl().filter(|_| holds_resources)?;
        let holder = self.remote.settings.heartbeats.new_holder_id(&*self.remote.store.backend);
        Some(LeaseTerm { holder, ttl })
    }

    fn observe(&self, denials: &[Denial]) {
        self.remote.cache_cooldown(denials.first().and_then(Denial::cooling_until));
    }
}

impl LimitSet {
    /// Takes the demand from a set in a store, waits for that as `policy` says, or denies it.
    pub(in crate::set) async fn acquire_stored<'a>(
        &'a self,
        remote: &'a StoredBacking,
        demand: Demand,
        policy: WaitPolicy,
    ) -> Result<Attempt<Lease<'a>>, AcquireError> {
        let planner = SetPlanner { set: self, remote, demand: &demand };
        let answer = async {
            match admit(&remote.store, &planner, policy).await {
                Ok(Decision::Admitted(admitted)) => {
                    Ok(Attempt::Admitted(self.admit_stored(&planner, admitted)))
                }
                Ok(Decision::Denied(denied)) => self.deny_stored(denied),
                Err(error) => {
                    if let AcquireError::QueueFull(_) = error {
                        self.reporter().report_if_watched(&Event::Denied { limit: None });
                    }
                    Err(error)
                }
            }
        };
        let is_unavailable =
            |error: &AcquireError| matches!(error, AcquireError::Store(StoreError::Unavailable(..)));
        let fall_back = || Ok(self.fall_back(remote, &demand)?.map(Attempt::Admitted));
        remote.store.health.or_fall_back(remote.clock(), answer, is_unavailable, fall_back).await
    }

    fn admit_stored<'a>(
        &'a self,
        planner: &SetPlanner<'a, '_>,
        admitted: AdmittedPlan<SetPlan>,
    ) -> Lease<'a> {
        let takes = planner.takes(&admitted.plan);
        let warnings = admitted.warnings(&takes);
        admitted.report(self.reporter(), &warnings);
        let warnings = names_of(warnings);
        let AdmittedPlan { plan: SetPlan { in_force, costs }, outcomes, term, waited, .. } = admitted;
        let grant = Grant::new(self, planner.remote, &in_force, &costs, outcomes.first(), term);
        Lease::stored(self, waited, warnings, grant)
    }

    fn deny_stored<'a>(&'a self, denied: DeniedPlan<SetPlan>) -> Result<Attempt<Lease<'a>>, AcquireError> {
        denied.report(self.reporter());
        let denial = denied.denials.into_iter().next();
        let denial = denial.ok_or_else(|| StoreError::BadCall("the store denied no limit".into()))?;
        Ok(Attempt::Denied(Box::new(denial)))
    }
}
