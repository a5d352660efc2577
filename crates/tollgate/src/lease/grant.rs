//! The part of a lease that is in a store: its reservation, and how that ends.

use std::time::Duration;

use tollgate_core::{Costs, Limits, Name, Tick};
use tollgate_store::{LeaseTerm, Reply, StepOutcome, StoreError};

use super::{Cold, ColdState, HeldLease, Lease};
use crate::admission::Takes;
use crate::process_flag::ProcessFlag;
use crate::reservation::{Origin, Reservation, ReservedTake};
use crate::set::{Backing, InForce, StoredBacking};
use crate::{Event, LeaseError, LimitSet};

/// What a lease holds of a set in a store.
pub(crate) struct Grant {
    reservation: Reservation,
    /// One bit for each of its limits that the program does not name, and that no report is charged to.
    pub(super) foreign: u64,
}

impl Grant {
    /// Makes a grant of the store. Heartbeats renew it while the lease is open.
    pub(crate) fn new(
        set: &LimitSet,
        remote: &StoredBacking,
        in_force: &InForce,
        costs: &Costs,
        outcome: Option<&StepOutcome>,
        term: Option<LeaseTerm>,
    ) -> Grant {
        let Grant { mut reservation, foreign } = Grant::from(remote, in_force, costs, outcome, Origin::Store);
        reservation.term = term;
        let heartbeats = remote.settings.heartbeats;
        Grant { reservation: reservation.with_heartbeat(&remote.store, heartbeats, set.reporter()), foreign }
    }

    /// Makes a grant of the memory that replaces the store.
    pub(crate) fn local(
        remote: &StoredBacking,
        in_force: &InForce,
        costs: &Costs,
        outcome: Option<&StepOutcome>,
    ) -> Grant {
        Grant::from(remote, in_force, costs, outcome, Origin::Fallback)
    }

    /// Makes a grant of nothing.
    pub(crate) fn nothing(remote: &StoredBacking, in_force: &InForce) -> Grant {
        let costs = Costs::none(in_force.limits.len());
        Grant::from(remote, in_force, &costs, None, Origin::Nowhere)
    }

    fn from(
        remote: &StoredBacking,
        in_force: &InForce,
        costs: &Costs,
        outcome: Option<&StepOutcome>,
        origin: Origin,
    ) -> Grant {
        let takes = Takes { bucket: &remote.key, limits: &in_force.limits, costs };
        let take = ReservedTake::new(takes, 0, outcome);
        Grant { reservation: Reservation::new(vec![take], origin, None), foreign: in_force.foreign }
    }

    fn take(&self) -> &ReservedTake {
        &self.reservation.takes[0]
    }

    /// Returns the limits that its costs are counted in.
    pub(super) fn limits(&self) -> &Limits {
        &self.take().limits
    }

    pub(super) fn costs(&self) -> &Costs {
        &self.take().costs
    }

    pub(super) fn is_degraded(&self) -> bool {
        self.reservation.is_degraded()
    }
}

/// What is sent to a store when a lease ends.
struct Settlement {
    set: LimitSet,
    reservation: Reservation,
    used: [Vec<u64>; 1],
}

impl Settlement {
    async fn send(self) -> Result<(), StoreError> {
        match self.set.backing() {
            Backing::Stored(remote) => self.reservation.settle(&remote.store, &self.used, None).await,
            Backing::Local(_) => Ok(()),
        }
    }

    fn send_detached(self) {
        if let Backing::Stored(remote) = self.set.backing() {
            self.reservation.settle_detached(&remote.store, &self.used, None);
        }
    }
}

impl<'a> Lease<'a> {
    /// Makes a lease on a set in a store.
    pub(crate) fn stored(
        set: &'a LimitSet,
        waited: Option<Duration>,
        warnings: Vec<Name>,
        grant: Grant,
    ) -> Lease<'a> {
        let mut extra = ColdState::boxed(None, None, waited);
        (extra.grant, extra.warnings) = (Some(grant), warnings);
        let (at, taken) = (Tick::ZERO, Default::default());
        let ends_on_drop = ProcessFlag::of_this_process(true);
        Lease { set: HeldLease::Borrowed(set), at, taken, extra: Cold(Some(extra)), ends_on_drop }
    }

    pub(super) fn grant(&self) -> Option<&Grant> {
        self.extra.0.as_ref()?.grant.as_ref()
    }

    /// Ends the lease on a set in a store, and returns what is to be sent; `None` if the set is in no store.
    fn take_settlement(&mut self, used: &[u64]) -> Option<Settlement> {
        let Grant { mut reservation, .. } = self.extra.0.as_mut()?.grant.take()?;
        reservation.stop_heartbeat();
        self.ends_on_drop.set(false);
        if reservation.origin != Origin::Nowhere {
            let take = &reservation.takes[0];
            self.set().reporter().report_difference(&take.limits, &take.costs, used);
        }
        Some(Settlement { set: self.set().clone(), reservation, used: [used.to_vec()] })
    }

    /// Ends a lease on a set in a store; `None` if it is not.
    pub(super) fn end_stored(&mut self, used: &[u64]) -> Option<Reply<'static, Result<(), StoreError>>> {
        Some(Reply::eager(self.take_settlement(used)?.send()))
    }

    /// As [`end_stored`](Lease::end_stored), for one that was dropped: what has to be sent is sent in the background.
    pub(super) fn end_detached_stored(&mut self, used: &[u64]) -> bool {
        let settlement = self.take_settlement(used);
        settlement.map(Settlement::send_detached).is_some()
    }

    /// Sends a heartbeat, if the lease is on a set in a store.
    pub(super) fn beat_stored(&self) -> Option<Reply<'_, Result<bool, LeaseError>>> {
        let grant = self.grant()?;
        let Backing::Stored(remote) = self.set().backing() else { return None };
        Some(grant.reservation.beat(&remote.store))
    }

    /// Returns whether the store reported that it does not know the holder any more.
    pub(super) fn is_lost_in_store(&self) -> bool {
        self.grant().is_some_and(|grant| grant.reservation.is_lost())
    }

    pub(super) fn report_expired(&self) {
        if self.extra.0.as_ref().is_some_and(|extra| extra.is_first_report()) {
            self.set().reporter().report(&Event::ExpiredLease);
        }
    }
}
