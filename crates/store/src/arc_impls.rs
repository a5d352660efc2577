//! Store traits for `Arc`: a shared store can be used like the store itself.

use std::sync::Arc;

use tollgate_core::{Denial, Limits, Status};

use crate::records::{Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write};
use crate::{
    Activity, Backend, BucketRef, BucketStatus, Clock, LocalBucket, OutcomeCallback, QueuePlace, Rank, Reach,
    Reply, Scope, Step, Store, StoreError, Transaction, TxnOutcome, WaitQueues,
};

impl<S: Store + ?Sized> Store for Arc<S> {
    fn reach(&self) -> Reach {
        (**self).reach()
    }

    fn clock(&self) -> &Clock {
        (**self).clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        (**self).apply(call)
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        (**self).evaluate(steps)
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        (**self).peek(place)
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        (**self).apply_detached(call);
    }

    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        (**self).apply_detached_with(call, callback);
    }

    fn new_holder_id(&self) -> u128 {
        (**self).new_holder_id()
    }

    fn new_living_holder(&self) -> u128 {
        (**self).new_living_holder()
    }
}

impl<R: Records + ?Sized> Records for Arc<R> {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        (**self).get_many(keys)
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        (**self).write(writes)
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        (**self).query(query)
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        (**self).find(index, query)
    }

    fn unindexed(&self, after: Option<Cursor>) -> Reply<'_, Result<Page<ItemKey>, RecordsError>> {
        (**self).unindexed(after)
    }

    fn revision(&self) -> Option<u64> {
        (**self).revision()
    }
}

impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        (**self).apply_with(call, writes)
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        (**self).buckets(namespace, scope, after, limit)
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        (**self).forget(namespace, scope)
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        (**self).close(namespace)
    }

    fn prefetch_bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        (**self).prefetch_bounds(limits)
    }

    fn wait_queues(&self) -> &WaitQueues {
        (**self).wait_queues()
    }

    fn apply_in_turn<'a>(
        &'a self,
        call: &Transaction<'a>,
        place: QueuePlace,
    ) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        (**self).apply_in_turn(call, place)
    }

    fn leave_queues(&self, rank: Rank) -> Reply<'_, ()> {
        (**self).leave_queues(rank)
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        (**self).activity(namespace, scope, after)
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        (**self).usage_at(keys)
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        (**self).write_usage(namespace, scope)
    }

    fn pin(&self, place: &BucketRef<'_>) -> Option<LocalBucket> {
        (**self).pin(place)
    }
}
