//! The table as a store of buckets.

use std::sync::Arc;

use tollgate_core::{Denial, Status};
use tollgate_store::workers::ToTheEnd;
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
        writes: Vec<tollgate_store::records::Write>,
    ) -> impl Future<Output = Result<TxnOutcome, tollgate_store::records::RecordsError>> + Send + use<> {
        let (inner, call) = (Arc::clone(&self.0), Arc::new(call));
        let unheard = {
            let (inner, call) = (Arc::clone(&inner), Arc::clone(&call));
            move |applied: Result<TxnOutcome, _>| {
                applied.iter().for_each(|applied| inner.undo(&call, applied))
            }
        };
        let handle = inner.service.workers.handle().clone();
        let apply = async move {
            inner.await_detached(&call).await;
            let applied = inner.apply(Arc::clone(&call), writes).await?;
            inner.after(&call, &applied);
            Ok(applied)
        };
        ToTheEnd::new(handle, apply, unheard)
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

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        let call = Arc::new(OwnedTransaction::new(&Transaction { id: None, steps, metered: false }));
        Reply::later(self.0.service.within(self.0.ask(call)))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let steps = [Step { place: *place, op: Op::Reset }];
        let call = Arc::new(OwnedTransaction::new(&Transaction { id: None, steps: &steps, metered: false }));
        Reply::later(self.0.service.within(self.0.peek(call)))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.0.apply_detached(OwnedTransaction::new(call));
    }

    fn hand_over_and_tell(&self, call: &Transaction<'_>, told: OutcomeCallback) {
        self.0.hand_over_and_tell(OwnedTransaction::new(call), told);
    }

    fn new_holder_id(&self) -> u128 {
        self.0.new_holder_id()
    }
}
