//! A store in which changes are rehearsed: it answers as if they were made, and makes none.
//!
//! So a dry run is the same code as the real one, with the same checks and the same errors, whatever the command. What
//! is written to records is kept here and seen by whoever reads them next; buckets stay as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate::store::records::{
    Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write, check_keys, check_writes,
};
use tollgate::store::{
    Applied, Backend, BucketStatus, Call, Clock, Done, FORGET_MAX, Op, Place, Reach, Reply, Room, Scope,
    Step, Store, StoreError, Taken,
};
use tollgate::{Ready, store};

/// Wraps a store and keeps what would be written to it.
pub(crate) struct Rehearsal {
    inner: Arc<dyn Backend>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Each record that would be another one, as it would be; `None` if it would be gone.
    records: BTreeMap<ItemKey, Option<Item>>,
    /// Those of them that are not in the store.
    new: BTreeSet<ItemKey>,
    /// The namespaces and scopes whose buckets would be forgotten.
    forgotten: BTreeSet<String>,
}

impl Rehearsal {
    /// A rehearsal on this store.
    pub(crate) fn on(inner: Arc<dyn Backend>) -> Rehearsal {
        Rehearsal { inner, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn record(&self, key: &ItemKey) -> Result<Option<Item>, RecordsError> {
        if let Some(kept) = self.kept().records.get(key) {
            return Ok(kept.clone());
        }
        let keys = [key.clone()];
        Ok(self.inner.get_many(&keys).await?.pop().flatten())
    }

    /// Keeps the writes if all their tests hold.
    async fn keep(&self, writes: &[Write]) -> Result<(), RecordsError> {
        check_writes(writes)?;
        let mut outcome = Vec::with_capacity(writes.len());
        for (place, write) in writes.iter().enumerate() {
            let there = self.record(write.key()).await?;
            if !write.passes(there.as_ref()) {
                return Err(RecordsError::Failed(place));
            }
            outcome.push((write.key().clone(), there.is_none(), write.applied(there)));
        }
        let mut kept = self.kept();
        for (key, was_missing, item) in outcome {
            if was_missing && !kept.records.contains_key(&key) {
                kept.new.insert(key.clone());
            }
            kept.records.insert(key, item);
        }
        Ok(())
    }
}

impl Kept {
    /// The records that are not in the store and that a query finds, in its order.
    fn added(&self, index: Option<Index>, query: &Query) -> Vec<Item> {
        let new = self.new.iter().filter_map(|key| self.records.get(key)?.as_ref());
        let mut found: Vec<(&str, &Item)> = new
            .filter_map(|item| Some((sort_in(item, index, &query.partition)?, item)))
            .filter(|(sort, _)| sort.starts_with(&query.prefix))
            .collect();
        found.sort_by_key(|(sort, _)| *sort);
        found.into_iter().map(|(_, item)| item.clone()).collect()
    }

    /// The record as it would be, if it is another one; the outer `None` if it is not.
    fn changed(&self, key: &ItemKey) -> Option<&Option<Item>> {
        self.records.get(key)
    }
}

/// What a record is sorted by in a partition: of the records, or of an index.
fn sort_in<'a>(item: &'a Item, index: Option<Index>, partition: &str) -> Option<&'a str> {
    let (found, sort) = match index {
        None => (item.key.partition.as_str(), item.key.sort.as_str()),
        Some(Index::Namespace) => (item.key.namespace(), item.key.partition.as_str()),
        Some(index) => {
            let (_, place) = item.indexed.iter().find(|(other, _)| *other == index)?;
            (place.partition.as_str(), place.sort.as_str())
        }
    };
    (found == partition).then_some(sort)
}

impl Records for Rehearsal {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        Reply::later(async move {
            check_keys(keys)?;
            let mut items = self.inner.get_many(keys).await?;
            let kept = self.kept();
            for (key, item) in keys.iter().zip(&mut items) {
                if let Some(changed) = kept.changed(key) {
                    *item = changed.clone();
                }
            }
            Ok(items)
        })
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        Reply::later(async move { self.keep(writes).await })
    }

    /// What would be new comes last, whatever the order.
    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        Reply::later(async move {
            let Page { items, next } = self.inner.query(query).await?;
            let kept = self.kept();
            let as_it_would_be = |item: Item| kept.changed(&item.key).cloned().unwrap_or(Some(item));
            let mut items: Vec<Item> = items.into_iter().filter_map(as_it_would_be).collect();
            if next.is_none() {
                items.extend(kept.added(None, query));
            }
            Ok(Page { items, next })
        })
    }

    /// What would be new comes last, whatever the order.
    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        Reply::later(async move {
            let Page { items, next } = self.inner.find(index, query).await?;
            let kept = self.kept();
            let stays = |key: &ItemKey| kept.changed(key).is_none_or(Option::is_some);
            let mut items: Vec<ItemKey> = items.into_iter().filter(stays).collect();
            if next.is_none() {
                items.extend(kept.added(Some(index), query).into_iter().map(|item| item.key));
            }
            Ok(Page { items, next })
        })
    }
}

impl Store for Rehearsal {
    fn reach(&self) -> Reach {
        self.inner.reach()
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn apply<'a>(&'a self, call: &Call<'a>) -> Reply<'a, Result<Applied, StoreError>> {
        let (steps, clock) = (call.steps, self.clock().clone());
        Reply::later(async move {
            let denials = self.inner.ask(steps).await?;
            if denials.iter().any(|denial| denial.ready() != Ready::Now) {
                return Ok(Applied::Denied(denials));
            }
            let taken = Taken { at: clock.now(), remarks: 0 };
            let done = |step: &Step<'_>| match step.op {
                Op::Take { .. } => Done::Taken(taken),
                Op::Settle(_) | Op::SettleIfThere(_) => Done::Settled,
                Op::Renew(_) => Done::Renewed(true),
                _ => Done::Changed,
            };
            Ok(Applied::Done(steps.iter().map(done).collect()))
        })
    }

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<tollgate::Denial>, StoreError>> {
        self.inner.ask(steps)
    }

    fn peek<'a>(&'a self, place: &Place<'a>) -> Reply<'a, Result<Vec<tollgate::Status>, StoreError>> {
        self.inner.peek(place)
    }

    fn hand_over(&self, _: &Call<'_>) {}

    fn new_holder(&self) -> u128 {
        self.inner.new_holder()
    }
}

impl Backend for Rehearsal {
    fn apply_with<'a>(
        &'a self,
        call: &Call<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<Applied, RecordsError>> {
        let applied = self.apply(call);
        Reply::later(async move {
            let applied = applied.await?;
            if let Applied::Done(_) = applied {
                self.keep(writes).await?;
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

    /// Counts them once, and says that there are none from then on.
    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        Reply::later(async move {
            if !self.kept().forgotten.insert(format!("{namespace} {scope:?}")) {
                return Ok(0);
            }
            let (mut count, mut after) = (0, None);
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

    fn room(&self) -> &Room {
        self.inner.room()
    }

    fn write_usage<'a>(&'a self, _: &'a str, _: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        Reply::ready(Ok(()))
    }

    fn pin(&self, _: &Place<'_>) -> Option<store::Pin> {
        None
    }
}
