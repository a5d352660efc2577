//! `Store` for the store.

use std::sync::Arc;

use tollgate_core::{Denial, Status};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::workers::{RunToCompletion, time_ordered_id};
use tollgate_store::{
    BucketRef, Clock, Op, OutcomeCallback, OwnedTransaction, Reach, Reply, Step, Store, StoreError,
    Transaction, TxnOutcome,
};

use crate::bucket::without_tests;
use crate::inner::DynamoStore;

impl DynamoStore {
    pub(crate) fn apply_call(
        &self,
        call: OwnedTransaction,
        writes: Vec<Write>,
    ) -> impl Future<Output = Result<TxnOutcome, RecordsError>> + Send + use<> {
        let (inner, call) = (Arc::clone(&self.0), Arc::new(call));
        let abandoned = {
            let (inner, call) = (Arc::clone(&inner), Arc::clone(&call));
            move |outcome: Result<TxnOutcome, _>| {
                if let Ok(outcome) = &outcome {
                    inner.buckets.dispatcher.undo(&call, outcome);
                }
            }
        };
        let handle = inner.service.workers.handle().clone();
        let apply = async move {
            let buckets = &inner.buckets;
            buckets.jobs.await_detached(&call).await;
            let outcome = buckets.dispatcher.dispatch(Arc::clone(&call), writes).await?;
            buckets.notify_freed(&call, &outcome);
            Ok(outcome)
        };
        RunToCompletion::new(handle, apply, abandoned)
    }
}

impl Store for DynamoStore {
    fn reach(&self) -> Reach {
        Reach::Fleet
    }

    fn clock(&self) -> &Clock {
        &self.0.service.clock
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        let apply = self.apply_call(OwnedTransaction::new(call), Vec::new());
        Reply::later(async move { apply.await.map_err(without_tests) })
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        let call = OwnedTransaction::new(&Transaction { id: None, steps, metered: false });
        Reply::later(self.0.service.within(async move { self.0.buckets.reader.evaluate(&call).await }))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let steps = [Step { place: *place, op: Op::Reset }];
        let call = OwnedTransaction::new(&Transaction { id: None, steps: &steps, metered: false });
        Reply::later(self.0.service.within(async move { self.0.buckets.reader.peek(&call).await }))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.0.buckets.jobs.apply_detached(OwnedTransaction::new(call), Box::new(|_| ()));
    }

    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        self.0.buckets.jobs.apply_detached(OwnedTransaction::new(call), callback);
    }

    fn new_holder_id(&self) -> u128 {
        time_ordered_id(self.clock().now())
    }
}
