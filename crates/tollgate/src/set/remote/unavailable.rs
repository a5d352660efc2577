//! What a set in a store does while the store is away.

use tollgate_catalog::OnUnavailable;
use tollgate_core::{Costs, Demand};
use tollgate_store::{Op, StepOutcome, Transaction, TxnOutcome};

use super::StoredBacking;
use crate::lease::Grant;
use crate::set::LimitSet;
use crate::{AcquireError, Event, Lease};

impl LimitSet {
    /// What the policy has to offer while the store is away; nothing, if it is to block.
    pub(super) fn fall_back<'a>(
        &'a self,
        remote: &'a StoredBacking,
        wanted: &Demand,
    ) -> Result<Option<Lease<'a>>, AcquireError> {
        let lease = match remote.settings.on_unavailable {
            OnUnavailable::Allow => {
                let in_force = remote.in_force();
                // What is wrong with the demand is wrong wherever the store is.
                remote.costs(&in_force, wanted, |name| self.skip_unknown(name))?;
                let nothing = Costs::none(in_force.limits.len());
                Lease::there(self, remote.clock().now(), nothing, None, Grant::nothing(in_force))
            }
            OnUnavailable::Local => match self.take_locally(remote, wanted)? {
                Some(lease) => lease,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.reporter().report(&Event::Degraded);
        Ok(Some(lease))
    }

    /// Takes from a bucket of this process, at a share of the limits that were cached last. Nothing, if they refuse.
    fn take_locally<'a>(
        &'a self,
        remote: &'a StoredBacking,
        wanted: &Demand,
    ) -> Result<Option<Lease<'a>>, AcquireError> {
        let mut in_force = remote.in_force();
        in_force.limits = in_force.limits.scaled(remote.settings.local_share);
        let (limits, costs) =
            (&in_force.limits, remote.costs(&in_force, wanted, |name| self.skip_unknown(name))?);
        let steps = [remote.step(limits, Op::Take { costs: &costs, term: None })];
        let taken = remote
            .store
            .store_of(true)
            .apply(&Transaction { id: None, steps: &steps, metered: false })
            .wait();
        let Ok(TxnOutcome::Done(done)) = taken else { return Ok(None) };
        let Some(StepOutcome::Taken(taken)) = done.first() else { return Ok(None) };
        Ok(Some(Lease::there(self, taken.at, costs.clone(), None, Grant::local(in_force.clone()))))
    }
}
