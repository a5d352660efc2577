//! `Store` and `Backend` for the memory store.

use std::sync::atomic::Ordering;

use tollgate_core::{Bucket, Denial, Status, Tick};

use super::evaluate::under;
use super::{Afters, Memory};
use crate::records::{Cursor, Item, ItemKey, Page, RecordsError, Write, check_keys};
use crate::{
    Activity, Backend, BucketRef, BucketStatus, Clock, Freed, Key, LocalBucket, OutcomeCallback, Reach,
    Reply, Scope, Step, Store, StoreError, Transaction, TxnOutcome, WaitQueues,
};

impl Store for Memory {
    fn reach(&self) -> Reach {
        Reach::Process
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        Reply::ready(self.apply_once(call, &[]).map_err(|error| match error {
            RecordsError::Store(error) => error,
            RecordsError::Failed(_) => StoreError::BadCall(error.to_string()),
        }))
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        Reply::ready(Ok(self.ask_each(steps)))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let now = self.clock.now();
        let statuses = match self.namespace(place.namespace).find(place.key) {
            Some(cell) => under(&cell.lock(), place.limits, now, |bucket, limits| bucket.peek(limits, now)),
            None => Bucket::fresh(place.limits, Tick::ZERO).peek(place.limits, now),
        };
        Reply::ready(Ok(statuses))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        // No caller is left to receive an error.
        drop(self.apply_once(call, &[]));
    }

    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        if let Ok(applied) = self.apply_once(call, &[]) {
            callback(&applied);
        }
    }

    fn new_holder_id(&self) -> u128 {
        self.holders.fetch_add(1, Ordering::Relaxed).into()
    }
}

impl Backend for Memory {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        Reply::ready(self.apply_once(call, writes))
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        Reply::ready(self.namespace(namespace).buckets(&self.clock, scope, after.as_ref(), limit))
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        let mut afters = Afters::new();
        let forgotten = self.namespace(namespace).forget(scope, self.clock.now(), &mut afters);
        // A waiter for a forgotten bucket has to be notified.
        let keys: Vec<Key> = afters.iter().map(|(cell, _)| cell.key().clone()).collect();
        self.follow_up(afters);
        keys.iter().for_each(|key| self.wait_queues.notify(&Freed::all(namespace, key)));
        Reply::ready(Ok(forgotten))
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        self.namespace(namespace).close();
        Reply::ready(Ok(()))
    }

    fn wait_queues(&self) -> &WaitQueues {
        &self.wait_queues
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        Reply::ready(self.namespace(namespace).activity(&self.clock, scope, after.as_ref()))
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        Reply::ready(check_keys(keys).map_err(RecordsError::from).map(|()| self.usage_records(keys)))
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        self.namespace(namespace).write_usage(scope);
        Reply::ready(Ok(()))
    }

    fn pin(&self, place: &BucketRef<'_>) -> Option<LocalBucket> {
        let space = self.namespace(place.namespace);
        let cell = space.find(place.key)?;
        Some(LocalBucket { cell, space })
    }
}
