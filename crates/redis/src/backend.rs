//! `Backend` for the store.

use tollgate_core::Limits;
use tollgate_store::records::{Cursor, Item, ItemKey, Page, RecordsError, Write, check_keys};
use tollgate_store::{
    Activity, Backend, BucketStatus, Key, OwnedTransaction, QueuePlace, Rank, Reply, Scope, StoreError,
    Transaction, TxnOutcome, WaitQueues,
};

use crate::inner::{RedisStore, without_tests};

impl Backend for RedisStore {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        Reply::later(self.apply_call(OwnedTransaction::new(call), writes.to_vec(), QueuePlace::default()))
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        Reply::later(self.0.service.within(self.0.buckets(namespace, scope, after, limit)))
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        Reply::later(self.0.service.within(self.0.forget(namespace, scope)))
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        Reply::later(self.0.service.within(self.0.close(namespace)))
    }

    fn prefetch_bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        self.0.prefetcher.bounds(limits)
    }

    fn wait_queues(&self) -> &WaitQueues {
        &self.0.wait_queues
    }

    fn apply_in_turn<'a>(
        &'a self,
        call: &Transaction<'a>,
        place: QueuePlace,
    ) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        let apply = self.apply_call(OwnedTransaction::new(call), Vec::new(), place);
        Reply::later(async move { apply.await.map_err(without_tests) })
    }

    fn leave_queues(&self, rank: Rank) -> Reply<'_, ()> {
        let leaving = self.0.leave_queues(rank);
        Reply::later(async move {
            if let Some(leaving) = leaving {
                // If it fails, the claims expire.
                let _ = leaving.await;
            }
        })
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        let after = match after.as_ref().map(Key::of_cursor).transpose() {
            Ok(after) => after,
            Err(why) => return Reply::ready(Err(why)),
        };
        Reply::later(async move {
            let found = self.0.service.within(self.0.activity(namespace, scope, after)).await;
            let (items, last) = found?;
            Ok(Page { items, next: last.map(|key| key.cursor()) })
        })
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        if let Err(why) = check_keys(keys) {
            return Reply::ready(Err(why.into()));
        }
        Reply::later(self.0.service.within(self.0.usage_at(keys)))
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        Reply::later(self.0.service.within(self.0.write_usage(namespace, scope)))
    }
}
