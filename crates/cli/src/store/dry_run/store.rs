use tollgate::store::records::{Cursor, Item, ItemKey, Page, RecordsError, Write};
use tollgate::store::{
    Activity, Backend, BucketRef, BucketStatus, Clock, FORGET_MAX, LocalBucket, Op, Reach, Reply, Scope,
    Step, StepOutcome, Store, StoreError, Taken, Transaction, TxnOutcome, WaitQueues,
};
use tollgate::{Denial, Limits, Ready, Status};

use super::DryRunStore;

impl Store for DryRunStore {
    fn reach(&self) -> Reach {
        self.inner.reach()
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        let steps = call.steps;
        let clock = self.clock().clone();
        Reply::later(async move {
            let denials = self.inner.evaluate(steps).await?;
            if denials.iter().any(|denial| denial.ready() != Ready::Now) {
                return Ok(TxnOutcome::Denied(denials));
            }
            let taken = Taken { at: clock.now(), warnings: 0 };
            let done = |step: &Step<'_>| match step.op {
                Op::Take { .. } => StepOutcome::Taken(taken),
                Op::Settle(_) | Op::SettleExisting(_) => StepOutcome::Settled,
                Op::Renew(_) => StepOutcome::Renewed(true),
                _ => StepOutcome::Changed,
            };
            Ok(TxnOutcome::Done(steps.iter().map(done).collect()))
        })
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        self.inner.evaluate(steps)
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        self.inner.peek(place)
    }

    fn apply_detached(&self, _: &Transaction<'_>) {}

    fn new_holder_id(&self) -> u128 {
        self.inner.new_holder_id()
    }

    fn new_living_holder(&self) -> u128 {
        self.inner.new_living_holder()
    }
}

impl Backend for DryRunStore {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        let applied = self.apply(call);
        Reply::later(async move {
            let applied = applied.await?;
            if let TxnOutcome::Done(_) = applied {
                self.buffer(writes).await?;
            }
            Ok(applied)
        })
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        self.inner.buckets(namespace, scope, after, limit)
    }

    /// Counts the buckets on the first call, and returns 0 from then on.
    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        Reply::later(async move {
            if !self.pending().forgotten.insert(format!("{namespace} {scope:?}")) {
                return Ok(0);
            }
            let mut count = 0;
            let mut after = None;
            loop {
                let page = self.inner.buckets(namespace, scope, after, FORGET_MAX).await?;
                count += page.items.len();
                match page.next {
                    Some(next) => after = Some(next),
                    None => return Ok(count),
                }
            }
        })
    }

    fn close<'a>(&'a self, _: &'a str) -> Reply<'a, Result<(), StoreError>> {
        Reply::ready(Ok(()))
    }

    fn prefetch_bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        self.inner.prefetch_bounds(limits)
    }

    fn wait_queues(&self) -> &WaitQueues {
        self.inner.wait_queues()
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        self.inner.activity(namespace, scope, after)
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        self.inner.usage_at(keys)
    }

    fn write_usage<'a>(&'a self, _: &'a str, _: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        Reply::ready(Ok(()))
    }

    fn pin(&self, _: &BucketRef<'_>) -> Option<LocalBucket> {
        None
    }
}
