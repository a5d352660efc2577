//! What a lease on a set in a store holds there, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Costs, Limits, Tick, Usage};
use tollgate_store::{LeaseTerm, Op, Reply, StoreError, Transaction};

use super::report::UsageReport;
use super::{Cold, ColdState, Flag32, HeldLease, Lease};
use crate::heartbeat::Heartbeat;
use crate::set::{Backing, InForce, StoredBacking};
use crate::{Event, LeaseError, LimitSet};

/// What was taken from a store.
pub(crate) struct Grant {
    /// The limits that it is counted in.
    pub(super) limits: Limits,
    /// One bit for each of them that the program does not name, and that no report is charged to.
    pub(super) foreign: u64,
    term: Option<LeaseTerm>,
    heart: Option<Arc<Heartbeat>>,
    origin: Origin,
}

/// Where it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Store,
    /// From the memory that stood in for it.
    StandIn,
    /// Nowhere: the store was away, and the policy was to allow.
    Nowhere,
}

impl Grant {
    /// What was taken from the store. While the lease is open, its heart beats.
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
        let heart = term.map(beats);
        Grant { limits, foreign, term, heart, origin: Origin::Store }
    }

    /// What was taken from the memory that stands in for the store.
    pub(crate) fn local(InForce { limits, foreign, .. }: InForce) -> Grant {
        Grant { limits, foreign, term: None, heart: None, origin: Origin::StandIn }
    }

    /// Nothing at all.
    pub(crate) fn nothing(InForce { limits, foreign, .. }: InForce) -> Grant {
        Grant { limits, foreign, term: None, heart: None, origin: Origin::Nowhere }
    }

    pub(super) fn is_degraded(&self) -> bool {
        self.origin != Origin::Store
    }
}

/// What there is to send to a store when a lease ends.
struct Settlement {
    set: LimitSet,
    grant: Grant,
    at: Tick,
    costs: Costs,
    used: Vec<u64>,
}

impl Settlement {
    fn remote(&self) -> Option<&StoredBacking> {
        match self.set.home() {
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
        let store = remote.store.store_of(self.grant.origin == Origin::StandIn);
        remote.store.bounded(store.apply(&call)).await.map(drop)
    }

    fn apply_detached(self) {
        let Some(remote) = self.remote() else { return };
        let steps = [remote.step(&self.grant.limits, self.op())];
        let call = Transaction { id: None, steps: &steps, metered: false };
        remote.store.store_of(self.grant.origin == Origin::StandIn).apply_detached(&call);
    }
}

impl<'a> Lease<'a> {
    /// A lease on a set in a store.
    pub(crate) fn there(
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

    /// Takes leave of the store, if the lease is on a set in one. It has ended then, whatever the store says.
    fn take_settlement(&mut self, costs: &Costs, used: &[u64], noted: UsageReport) -> Option<Settlement> {
        let mut grant = self.extra.0.as_mut()?.grant.take()?;
        // From here on it is no loss that the store does not know the holder.
        grant.heart = None;
        self.ends_on_drop.set(false);
        let (limits, reporter) = (&grant.limits, self.set().reporter());
        let is_over = costs.amounts().iter().zip(used).any(|(reserved, used)| used > reserved);
        if grant.origin != Origin::Nowhere && (is_over || noted.differs && reporter.is_watched()) {
            self.tell(limits, costs, used);
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
        let farewell = self.take_settlement(costs, used, noted)?;
        Some(match farewell.says_something() {
            true => Reply::eager(farewell.send()),
            false => Reply::ready(Ok(())),
        })
    }

    /// As [`end_stored`](Lease::end_stored), for one that was dropped: what has to be sent is sent in the background.
    pub(super) fn drop_there(&mut self, costs: &Costs, used: &[u64], noted: UsageReport) -> bool {
        let Some(farewell) = self.take_settlement(costs, used, noted) else { return false };
        if farewell.says_something() {
            farewell.apply_detached();
        }
        true
    }

    /// Says that the holder is alive, if the lease is on a set in a store.
    pub(super) fn beat_there(&self) -> Option<Reply<'_, Result<bool, LeaseError>>> {
        let grant = self.grant()?;
        let (Some(heart), Backing::Stored(remote)) = (&grant.heart, self.set().home()) else {
            return Some(Reply::ready(Ok(true)));
        };
        let beat = heart.beat(remote.store.timeout);
        Some(Reply::later(async move { Ok(beat.await?) }))
    }

    /// Returns whether the store reported that it does not know the holder any more.
    pub(super) fn is_lost_there(&self) -> bool {
        self.grant().and_then(|grant| grant.heart.as_ref()).is_some_and(|heart| heart.is_lost())
    }

    pub(super) fn tell_expired(&self) {
        if self.extra.0.as_ref().is_some_and(|extra| extra.is_first_to_tell()) {
            self.set().reporter().report(&Event::ExpiredLease);
        }
    }
}

impl Settlement {
    /// Whether anything is given back, or was used beyond what was taken.
    fn says_something(&self) -> bool {
        let mut parts = self.grant.limits.iter().zip(self.costs.amounts());
        let holds = parts.any(|(limit, amount)| limit.is_resource() && *amount > 0);
        self.grant.origin != Origin::Nowhere && (holds || self.costs.amounts() != self.used.as_slice())
    }
}
