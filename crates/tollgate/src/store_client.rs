//! Calls to the buckets of one namespace of a store, each bounded by the store timeout.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Denial, Limits, Usage};
use tollgate_store::{
    Backend, BucketRef, Clock, Key, Op, OpId, Reach, Step, Store, StoreError, Transaction, TxnOutcome,
};

use crate::admission::Takes;
use crate::fallback::StoreHealth;
use crate::timeout::with_timeout;

/// A namespace of a store, and how a set, a limiter or a checker calls it.
pub(crate) struct StoreClient {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) namespace: Arc<str>,
    /// How long the store may take to answer.
    pub(crate) timeout: Duration,
    /// Whether the buckets are those of entities.
    is_of_entities: bool,
    pub(crate) health: StoreHealth,
}

impl StoreClient {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        namespace: impl Into<Arc<str>>,
        timeout: Duration,
    ) -> StoreClient {
        let (namespace, health) = (namespace.into(), StoreHealth::default());
        StoreClient { backend, namespace, timeout, is_of_entities: false, health }
    }

    /// Calls buckets of entities: the store adds up what is used of them, and one that was deleted since it was taken from stays
    /// deleted.
    pub(crate) fn of_entities(self) -> StoreClient {
        StoreClient { is_of_entities: true, ..self }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.backend.clock()
    }

    pub(crate) fn bucket<'s>(&'s self, key: &'s Key, limits: &'s Limits) -> BucketRef<'s> {
        BucketRef { namespace: &self.namespace, key, limits }
    }

    pub(crate) fn step<'s>(&'s self, key: &'s Key, limits: &'s Limits, op: Op<'s>) -> Step<'s> {
        Step { place: self.bucket(key, limits), op }
    }

    /// Makes a transaction of the steps. It has an id where the reply can be lost: on the way from another host.
    pub(crate) fn transaction<'s>(&self, steps: &'s [Step<'s>]) -> Transaction<'s> {
        let id = (self.backend.reach() == Reach::Fleet).then(|| OpId(self.backend.new_holder_id()));
        Transaction { id, steps, metered: self.is_of_entities }
    }

    /// Returns the step that settles a bucket with this usage.
    pub(crate) fn settle_step<'s>(&'s self, key: &'s Key, limits: &'s Limits, usage: Usage<'s>) -> Step<'s> {
        let op = if self.is_of_entities { Op::SettleExisting(usage) } else { Op::Settle(usage) };
        self.step(key, limits, op)
    }

    /// Makes a transaction of steps that settle. It has an id only if several processes may send it.
    pub(crate) fn settlement<'s>(&self, id: Option<OpId>, steps: &'s [Step<'s>]) -> Transaction<'s> {
        Transaction { id, steps, metered: self.is_of_entities }
    }

    /// Waits for an answer of the store, and no longer than it may take.
    pub(crate) async fn bounded<T, E: From<StoreError>>(
        &self,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        with_timeout(self.clock(), self.timeout, answer).await
    }

    /// Applies steps together.
    pub(crate) async fn apply(&self, steps: &[Step<'_>]) -> Result<TxnOutcome, StoreError> {
        self.bounded(self.backend.apply(&self.transaction(steps))).await
    }

    /// Returns how each take would fare now, with nothing taken.
    pub(crate) async fn evaluate(&self, takes: &[Takes<'_>]) -> Result<Vec<Denial>, StoreError> {
        let steps: Vec<Step<'_>> = takes.iter().map(|takes| takes.step(self, None)).collect();
        self.bounded(self.backend.evaluate(&steps)).await
    }

    /// Returns the store that a lease was taken from: this one, or the memory that replaced it while it was unavailable.
    pub(crate) fn store_of(&self, is_fallback: bool) -> &dyn Store {
        if is_fallback { self.health.local_store(self.clock()) } else { &*self.backend }
    }
}
