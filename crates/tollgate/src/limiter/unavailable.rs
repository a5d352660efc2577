//! What a limiter does while the store is unavailable.

use tollgate_catalog::OnUnavailable;
use tollgate_core::{Costs, Limits};
use tollgate_store::{Step, Transaction, TxnOutcome};

use super::lease::{LimiterLease, StoredGrant};
use super::plan::{LimiterRequest, PlannedTake};
use super::{Limiter, LimiterShared};
use crate::Event;

impl LimiterShared {
    /// Returns the policy: the limiter's own, or else the stored one, as far as it is cached.
    fn policy(&self, request: &LimiterRequest<'_>) -> OnUnavailable {
        let stored = || {
            let (resource, _) = request.demands.first()?;
            self.routes().get(request.entity, resource)?.chain.on_unavailable
        };
        let own = self.settings.on_unavailable;
        own.or_else(stored).or_else(|| self.catalog.last_on_unavailable()).unwrap_or(OnUnavailable::Block)
    }
}

impl Limiter {
    /// Returns the lease that the policy offers while the store is unavailable; `None` if it is to block.
    pub(super) fn fall_back(&self, request: &LimiterRequest<'_>) -> Option<LimiterLease<'_>> {
        let lease = match self.0.policy(request) {
            OnUnavailable::Allow => LimiterLease::nothing(self),
            OnUnavailable::Local => self.take_local_share(request)?,
            _ => return None,
        };
        self.0.reporter.report(&Event::Degraded);
        Some(lease)
    }

    /// Takes from buckets of this process, at a share of the limits that were cached last; `None` if they deny it or if no
    /// limits are cached.
    fn take_local_share(&self, request: &LimiterRequest<'_>) -> Option<LimiterLease<'_>> {
        let plan = self.plan_local_share(request)?;
        let store = &self.0.store;
        let steps: Vec<Step<'_>> = plan.iter().map(|planned| planned.takes().step(store, None)).collect();
        let call = Transaction { id: None, steps: &steps, metered: false };
        match store.store_of(true).apply(&call).wait() {
            Ok(TxnOutcome::Done(done)) => {
                Some(LimiterLease::stored(self, StoredGrant::local(request, &plan, &done), None))
            }
            _ => None,
        }
    }

    fn plan_local_share(&self, request: &LimiterRequest<'_>) -> Option<Vec<PlannedTake>> {
        let mut plan = Vec::new();
        for (resource, (name, demand)) in request.demands.iter().enumerate() {
            let given = request.limits.filter(|_| resource == 0);
            let route = self.0.routes().get(request.entity, name)?;
            for (link, found) in route.chain.links.iter().enumerate() {
                let limits = given.filter(|_| link == 0).unwrap_or(&found.limits);
                let limits = limits.scaled(self.0.settings.local_share);
                let costs =
                    limits.resolve(demand, |_| Ok(())).ok().filter(|costs| fits_ever(&limits, costs))?;
                plan.push(PlannedTake::under(&route.chain, link, resource, limits, costs));
            }
        }
        Some(plan)
    }
}

fn fits_ever(limits: &Limits, costs: &Costs) -> bool {
    limits.impossible(costs).is_none()
}
