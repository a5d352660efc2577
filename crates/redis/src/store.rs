//! `Store` for the store.

use std::sync::Arc;

use tollgate_core::{Denial, Status};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::workers::RunToCompletion;
use tollgate_store::{
    BucketRef, Clock, Op, OutcomeCallback, OwnedTransaction, QueuePlace, Reach, Reply, Step, Store,
    StoreError, Transaction, TxnOutcome,
};

use crate::apply::remembered_by;
use crate::inner::{RedisStore, without_tests};

impl RedisStore {
    pub(crate) fn apply_call(
        &self,
        call: OwnedTransaction,
        writes: Vec<Write>,
        place: QueuePlace,
    ) -> impl Future<Output = Result<TxnOutcome, RecordsError>> + Send + use<> {
        let (inner, call) = (Arc::clone(&self.0), Arc::new(call));
        let abandoned = {
            let (inner, call, rank) = (Arc::clone(&inner), Arc::clone(&call), place.rank);
            move |outcome: Result<TxnOutcome, _>| {
                if let Ok(outcome) = &outcome {
                    inner.undo(&call, outcome);
                }
                if let Some(rank) = rank {
                    inner.leave_late(rank, &call);
                }
            }
        };
        let handle = inner.service.workers.handle().clone();
        let apply = async move {
            inner.await_detached(&call).await;
            let remembered = remembered_by(inner.service.timeout);
            let outcome = inner.apply_prefetched(&call, &writes, remembered, &place).await?;
            inner.notify_freed(&call, &outcome);
            Ok(outcome)
        };
        RunToCompletion::new(handle, apply, abandoned)
    }
}

impl Store for RedisStore {
    fn reach(&self) -> Reach {
        Reach::Fleet
    }

    fn clock(&self) -> &Clock {
        self.0.service.time.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        let apply = self.apply_call(OwnedTransaction::new(call), Vec::new(), QueuePlace::default());
        Reply::later(async move { apply.await.map_err(without_tests) })
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        let call = OwnedTransaction::new(&Transaction { id: None, steps, metered: false });
        Reply::later(self.0.service.within(async move {
            self.0.await_detached(&call).await;
            self.0.evaluate(&call).await
        }))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let steps = [Step { place: *place, op: Op::Reset }];
        let call = OwnedTransaction::new(&Transaction { id: None, steps: &steps, metered: false });
        Reply::later(self.0.service.within(async move {
            self.0.await_detached(&call).await;
            self.0.peek(&call).await
        }))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.0.apply_detached(OwnedTransaction::new(call), Box::new(|_| ()));
    }

    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        self.0.apply_detached(OwnedTransaction::new(call), callback);
    }

    fn new_holder_id(&self) -> u128 {
        self.0.new_holder_id()
    }
}
