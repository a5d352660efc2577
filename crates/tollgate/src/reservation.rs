//! Reservations: what one transaction took from the buckets of a store, until it is settled.
//!
//! A lease of a set in a store has one, a lease of a limiter has one for each time that it took. Which usage is reported, and what
//! counts if none is, the leases decide; how it reaches the store is decided here.

use std::sync::Arc;

use tollgate_core::{Costs, Limits, Tick, Usage};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::usage::Caller;
use tollgate_store::{Key, LeaseTerm, LocalBucket, OpId, Reply, Step, StepOutcome, StoreError};

use crate::LeaseError;
use crate::admission::Takes;
use crate::heartbeat::Heartbeat;
use crate::limiter::Heartbeats;
use crate::observe::Reporter;
use crate::store_client::StoreClient;

/// What was taken in one transaction, and who holds it.
pub(crate) struct Reservation {
    pub(crate) takes: Vec<ReservedTake>,
    pub(crate) origin: Origin,
    /// The holder of the resources, if they can expire.
    pub(crate) term: Option<LeaseTerm>,
    heartbeat: Option<Arc<Heartbeat>>,
}

/// Where a reservation was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Store,
    /// The memory that replaces the store while it is unavailable.
    Fallback,
    /// Nowhere: the store was unavailable, and the policy was to allow.
    Nowhere,
}

/// What was taken from one bucket.
pub(crate) struct ReservedTake {
    pub(crate) key: Key,
    pub(crate) limits: Limits,
    pub(crate) costs: Costs,
    pub(crate) at: Tick,
    /// The index of the resource among those that were demanded together.
    pub(crate) resource: usize,
    /// The bucket, if it is in this process. While a reservation has it, the store does not evict it, so that it is there to be
    /// settled.
    pub(crate) pin: Option<LocalBucket>,
}

impl ReservedTake {
    /// Makes the take of a step with this outcome; without one, nothing was taken.
    pub(crate) fn new(takes: Takes<'_>, resource: usize, outcome: Option<&StepOutcome>) -> ReservedTake {
        let at = match outcome {
            Some(StepOutcome::Taken(taken)) => taken.at,
            _ => Tick::ZERO,
        };
        let Takes { bucket, limits, costs } = takes;
        let (key, limits, costs) = (bucket.clone(), limits.clone(), costs.clone());
        ReservedTake { key, limits, costs, at, resource, pin: None }
    }

    /// Pins the bucket, if it is in this process.
    pub(crate) fn pinned(self, store: &StoreClient) -> ReservedTake {
        let pin = store.backend.pin(&store.bucket(&self.key, &self.limits));
        ReservedTake { pin, ..self }
    }

    pub(crate) fn holds_resources(&self) -> bool {
        Takes { bucket: &self.key, limits: &self.limits, costs: &self.costs }.holds_resources()
    }

    /// Returns the usage to settle; `None` if the bucket has nothing to give back and nothing more was used of it.
    fn usage<'u>(&'u self, used: &'u [u64], term: Option<LeaseTerm>) -> Option<Usage<'u>> {
        let holds = self.holds_resources();
        if !holds && self.costs.amounts() == used {
            return None;
        }
        let holder = term.filter(|_| holds).map(|term| term.holder);
        Some(Usage { at: self.at, reserved: &self.costs, used, holder })
    }
}

impl Reservation {
    pub(crate) fn new(takes: Vec<ReservedTake>, origin: Origin, term: Option<LeaseTerm>) -> Reservation {
        Reservation { takes, origin, term, heartbeat: None }
    }

    /// Sends heartbeats from now on, until it is settled, if it holds resources that expire.
    pub(crate) fn with_heartbeat(
        mut self,
        store: &StoreClient,
        heartbeats: Heartbeats,
        reporter: &Reporter,
    ) -> Reservation {
        let holding = self.takes.iter().filter(|take| take.holds_resources());
        let buckets: Vec<_> = holding.map(|take| (take.key.clone(), take.limits.clone())).collect();
        let start = |term| {
            Heartbeat::start(&store.backend, &store.namespace, buckets.clone(), term, heartbeats, reporter)
        };
        self.heartbeat = self.term.filter(|_| !buckets.is_empty()).map(start);
        self
    }

    /// Stops heartbeats: from here on it is no loss that the store does not know the holder.
    pub(crate) fn stop_heartbeat(&mut self) {
        self.heartbeat = None;
    }

    /// Sends a heartbeat, and returns whether the store still knew the holder; always, if nothing expires.
    pub(crate) fn beat(&self, store: &StoreClient) -> Reply<'_, Result<bool, LeaseError>> {
        match &self.heartbeat {
            None => Reply::ready(Ok(true)),
            Some(heartbeat) => {
                let beat = heartbeat.beat(store.timeout);
                Reply::later(async move { Ok(beat.await?) })
            }
        }
    }

    /// Returns whether the store reported that it does not know the holder any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.is_lost())
    }

    /// Returns whether it limits less than it should, because the store was unavailable.
    pub(crate) fn is_degraded(&self) -> bool {
        self.origin != Origin::Store
    }

    pub(crate) fn holds_resources(&self) -> bool {
        self.takes.iter().any(ReservedTake::holds_resources)
    }

    /// Settles the usage of each take, in one transaction.
    pub(crate) async fn settle(
        &self,
        store: &StoreClient,
        used: &[Vec<u64>],
        id: Option<OpId>,
    ) -> Result<(), StoreError> {
        let steps = self.steps(store, used);
        if steps.is_empty() {
            return Ok(());
        }
        let call = store.settlement(id, &steps);
        store.bounded(store.store_of(self.origin == Origin::Fallback).apply(&call)).await.map(drop)
    }

    /// As [`settle`](Reservation::settle), together with these writes, also if there is nothing to settle.
    pub(crate) async fn settle_with(
        &self,
        store: &StoreClient,
        used: &[Vec<u64>],
        id: Option<OpId>,
        writes: &[Write],
    ) -> Result<(), RecordsError> {
        let steps = self.steps(store, used);
        let call = store.settlement(id, &steps);
        store.bounded(store.backend.apply_with(&call, writes)).await.map(drop)
    }

    /// Settles the usage of each take in the background.
    pub(crate) fn settle_detached(&self, store: &StoreClient, used: &[Vec<u64>], id: Option<OpId>) {
        let steps = self.steps(store, used);
        if !steps.is_empty() {
            let call = store.settlement(id, &steps);
            store.store_of(self.origin == Origin::Fallback).apply_detached(&call);
        }
    }

    /// Returns whether all of its buckets are in this process.
    pub(crate) fn is_pinned(&self) -> bool {
        self.takes.iter().all(|take| take.pin.is_some())
    }

    /// Settles the usage of each take from a [pinned](Reservation::is_pinned) bucket, with no call to the store.
    pub(crate) fn settle_pinned(&self, store: &StoreClient, used: &[Vec<u64>]) {
        for (take, used) in self.takes.iter().zip(used) {
            let (Some(pin), Some(usage)) = (&take.pin, take.usage(used, self.term)) else { continue };
            pin.cell.settle(store.clock(), &take.limits, &usage);
            if take.costs.amounts() != used.as_slice() {
                let (now, caller) = (store.clock().now(), Caller::of(&take.costs));
                pin.count_settlement(now, &take.limits, caller, take.costs.amounts(), used);
            }
            let bucket = store.bucket(&take.key, &take.limits);
            store.backend.wait_queues().notify_settled(&bucket, &usage);
        }
    }

    /// Returns the steps that settle the usage, where there is anything to settle.
    fn steps<'s>(&'s self, store: &'s StoreClient, used: &'s [Vec<u64>]) -> Vec<Step<'s>> {
        let step = |(take, used): (&'s ReservedTake, &'s Vec<u64>)| {
            let usage = take.usage(used, self.term)?;
            Some(store.settle_step(&take.key, &take.limits, usage))
        };
        let takes = self.takes.iter().zip(used);
        takes.filter(|_| self.origin != Origin::Nowhere).filter_map(step).collect()
    }
}
