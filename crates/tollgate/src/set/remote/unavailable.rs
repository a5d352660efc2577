//! Fallback of a set while its store is unavailable.

use tollgate_catalog::OnUnavailable;
use tollgate_core::Demand;
use tollgate_store::{Op, Transaction, TxnOutcome};

use super::StoredBacking;
use crate::lease::Grant;
use crate::set::LimitSet;
use crate::{AcquireError, Event, Lease};

impl LimitSet {
    /// Returns the lease that the policy offers while the store is unavailable; `None` if it is to block.
    pub(super) fn fall_back<'a>(
        &'a self,
        remote: &'a StoredBacking,
        wanted: &Demand,
    ) -> Result<Option<Lease<'a>>, AcquireError> {
        let lease = match remote.settings.on_unavailable {
            OnUnavailable::Allow => {
                let in_force = remote.in_force();
                // A demand that is not valid is an error, also while the store is unavailable.
                remote.costs(&in_force, wanted, |name| self.skip_unknown(name))?;
                Lease::stored(self, None, Vec::new(), Grant::nothing(remote, &in_force))
            }
            OnUnavailable::Local => match self.take_local_share(remote, wanted)? {
                Some(lease) => lease,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.reporter().report(&Event::Degraded);
        Ok(Some(lease))
    }

    /// Takes from a bucket of this process, at a share of the limits that were cached last; `None` if they deny it.
    fn take_local_share<'a>(
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
        Ok(Some(Lease::stored(self, None, Vec::new(), Grant::local(remote, &in_force, &costs, done.first()))))
    }
}
