//! Calls to the buckets of one namespace of a store, each bounded by the store timeout.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Denial, Limits};
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
    /// Whether the store adds up what is used by hour, day and month.
    metered: bool,
    pub(crate) health: StoreHealth,
}

impl StoreClient {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        namespace: impl Into<Arc<str>>,
        timeout: Duration,
    ) -> StoreClient {
        let (namespace, health) = (namespace.into(), StoreHealth::default());
        StoreClient { backend, namespace, timeout, metered: false, health }
    }

    /// Has the store add up what is used.
    pub(crate) fn metered(self) -> StoreClient {
        StoreClient { metered: true, ..self }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.backend.clock()
    }

    pub(crate) fn step<'s>(&'s self, key: &'s Key, limits: &'s Limits, op: Op<'s>) -> Step<'s> {
        Step { place: BucketRef { namespace: &self.namespace, key, limits }, op }
    }

    /// Makes a transaction of the steps. It has an id where the reply can be lost: on the way from another host.
    pub(crate) fn transaction<'s>(&self, steps: &'s [Step<'s>]) -> Transaction<'s> {
        let id = (self.backend.reach() == Reach::Fleet).then(|| OpId(self.backend.new_holder_id()));
        Transaction { id, steps, metered: self.metered }
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
    pub(crate) async fn ask(&self, takes: &[Takes<'_>]) -> Result<Vec<Denial>, StoreError> {
        let steps: Vec<Step<'_>> = takes.iter().map(|takes| takes.step(self, None)).collect();
        self.bounded(self.backend.ask(&steps)).await
    }

    /// Returns the store that a lease was taken from: this one, or the memory that replaced it while it was unavailable.
    pub(crate) fn store_of(&self, is_fallback: bool) -> &dyn Store {
        if is_fallback { self.health.local_store(self.clock()) } else { &*self.backend }
    }
}
