//! The part of a lease that is in a store: what it holds there, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Costs, Limits, Tick, Usage};
use tollgate_store::{LeaseTerm, Op, Reply, StoreError, Transaction};

use super::report::UsageReport;
use super::{Cold, ColdState, Flag32, HeldLease, Lease};
use crate::heartbeat::Heartbeat;
use crate::set::{Backing, InForce, StoredBacking};
use crate::{Event, LeaseError, LimitSet};

/// A grant of a store.
pub(crate) struct Grant {
    /// The limits that it is counted in.
    pub(super) limits: Limits,
    /// One bit for each of them that the program does not name, and that no report is charged to.
    pub(super) foreign: u64,
    term: Option<LeaseTerm>,
    heartbeat: Option<Arc<Heartbeat>>,
    origin: Origin,
}

/// Where a grant was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Store,
    /// From the memory that replaced the store while it was unavailable.
    Fallback,
    /// Nowhere: the store was unavailable, and the policy was to allow.
    Nowhere,
}

impl Grant {
    /// Makes a grant of the store. Heartbeats renew it while the lease is open.
    pub(crate) fn new(
        set: &LimitSet,
        remote: &StoredBacking,
        in_force: InForce,
        term: Option<LeaseTerm>,
    ) -> Grant {
        let InForce { limits, foreign, .. } = in_force;
        let beats = |term: LeaseTerm| {
            let buckets = vec![(remote.key.clone(), limits.clone())];
            let (heartbeats, reporter) = (remote.settings.heartbeats, set.reporter());
            Heartbeat::start(
                &remote.store.backend,
                &remote.store.namespace,
                buckets,
                term,
                heartbeats,
                reporter,
            )
        };
        let heartbeat = term.map(beats);
        Grant { limits, foreign, term, heartbeat, origin: Origin::Store }
    }

    /// Makes a grant of the memory that replaces the store.
    pub(crate) fn local(InForce { limits, foreign, .. }: InForce) -> Grant {
        Grant { limits, foreign, term: None, heartbeat: None, origin: Origin::Fallback }
    }

    /// Makes a grant of nothing.
    pub(crate) fn nothing(InForce { limits, foreign, .. }: InForce) -> Grant {
        Grant { limits, foreign, term: None, heartbeat: None, origin: Origin::Nowhere }
    }

    pub(super) fn is_degraded(&self) -> bool {
        self.origin != Origin::Store
    }
}

/// What is sent to a store when a lease ends.
struct Settlement {
    set: LimitSet,
    grant: Grant,
    at: Tick,
    costs: Costs,
    used: Vec<u64>,
}

impl Settlement {
    fn remote(&self) -> Option<&StoredBacking> {
        match self.set.backing() {
            Backing::Stored(remote) => Some(remote),
            Backing::Local(_) => None,
        }
    }

    fn op(&self) -> Op<'_> {
        let holder = self.grant.term.map(|term| term.holder);
        Op::Settle(Usage { at: self.at, reserved: &self.costs, used: &self.used, holder })
    }

    async fn send(self) -> Result<(), StoreError> {
        let Some(remote) = self.remote() else { return Ok(()) };
        let steps = [remote.step(&self.grant.limits, self.op())];
        let call = Transaction { id: None, steps: &steps, metered: false };
        let store = remote.store.store_of(self.grant.origin == Origin::Fallback);
        remote.store.bounded(store.apply(&call)).await.map(drop)
    }

    fn apply_detached(self) {
        let Some(remote) = self.remote() else { return };
        let steps = [remote.step(&self.grant.limits, self.op())];
        let call = Transaction { id: None, steps: &steps, metered: false };
        remote.store.store_of(self.grant.origin == Origin::Fallback).apply_detached(&call);
    }
}

impl<'a> Lease<'a> {
    /// Makes a lease on a set in a store.
    pub(crate) fn stored(
        set: &'a LimitSet,
        at: Tick,
        costs: Costs,
        waited: Option<Duration>,
        grant: Grant,
    ) -> Lease<'a> {
        let mut extra = ColdState::boxed(Some(&costs), None, waited);
        extra.grant = Some(grant);
        let taken = Default::default();
        let ends_on_drop = Flag32::of_this_process(true);
        Lease { set: HeldLease::Borrowed(set), at, taken, extra: Cold(Some(extra)), ends_on_drop }
    }

    pub(super) fn grant(&self) -> Option<&Grant> {
        self.extra.0.as_ref()?.grant.as_ref()
    }

    /// Ends the lease on a set in a store, and returns what is to be sent; `None` if the set is in no store.
    fn take_settlement(&mut self, costs: &Costs, used: &[u64], noted: UsageReport) -> Option<Settlement> {
        let mut grant = self.extra.0.as_mut()?.grant.take()?;
        // From here on it is no loss that the store does not know the holder.
        grant.heartbeat = None;
        self.ends_on_drop.set(false);
        let (limits, reporter) = (&grant.limits, self.set().reporter());
        let is_over = costs.amounts().iter().zip(used).any(|(reserved, used)| used > reserved);
        if grant.origin != Origin::Nowhere && (is_over || noted.differs && reporter.is_watched()) {
            self.report_difference(limits, costs, used);
        }
        Some(Settlement {
            set: self.set().clone(),
            grant,
            at: self.at,
            costs: costs.clone(),
            used: used.to_vec(),
        })
    }

    /// Ends a lease on a set in a store; `None` if it is not.
    pub(super) fn end_stored(
        &mut self,
        costs: &Costs,
        used: &[u64],
        noted: UsageReport,
    ) -> Option<Reply<'static, Result<(), StoreError>>> {
        let settlement = self.take_settlement(costs, used, noted)?;
        Some(if settlement.is_noop() { Reply::ready(Ok(())) } else { Reply::eager(settlement.send()) })
    }

    /// As [`end_stored`](Lease::end_stored), for one that was dropped: what has to be sent is sent in the background.
    pub(super) fn end_detached_stored(&mut self, costs: &Costs, used: &[u64], noted: UsageReport) -> bool {
        let Some(settlement) = self.take_settlement(costs, used, noted) else { return false };
        if !settlement.is_noop() {
            settlement.apply_detached();
        }
        true
    }

    /// Sends a heartbeat, if the lease is on a set in a store.
    pub(super) fn beat_stored(&self) -> Option<Reply<'_, Result<bool, LeaseError>>> {
        let grant = self.grant()?;
        let (Some(heartbeat), Backing::Stored(remote)) = (&grant.heartbeat, self.set().backing()) else {
            return Some(Reply::ready(Ok(true)));
        };
        let beat = heartbeat.beat(remote.store.timeout);
        Some(Reply::later(async move { Ok(beat.await?) }))
    }

    /// Returns whether the store reported that it does not know the holder any more.
    pub(super) fn is_lost_in_store(&self) -> bool {
        self.grant().and_then(|grant| grant.heartbeat.as_ref()).is_some_and(|heartbeat| heartbeat.is_lost())
    }

    pub(super) fn report_expired(&self) {
        if self.extra.0.as_ref().is_some_and(|extra| extra.is_first_report()) {
            self.set().reporter().report(&Event::ExpiredLease);
        }
    }
}

impl Settlement {
    /// Returns whether nothing is given back and nothing was used beyond what was taken.
    fn is_noop(&self) -> bool {
        let mut parts = self.grant.limits.iter().zip(self.costs.amounts());
        let holds = parts.any(|(limit, amount)| limit.is_resource() && *amount > 0);
        self.grant.origin == Origin::Nowhere || !holds && self.costs.amounts() == self.used.as_slice()
    }
}
