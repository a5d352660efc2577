//! `Backend` for the store.

use tollgate_core::Limits;
use tollgate_store::records::{Cursor, Item, ItemKey, Page, RecordsError, Write, check_keys};
use tollgate_store::{
    Activity, Backend, BucketStatus, OwnedTransaction, Reply, Scope, StoreError, Transaction, TxnOutcome,
    WaitQueues,
};

use crate::inner::DynamoStore;

impl Backend for DynamoStore {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        Reply::later(self.apply_call(OwnedTransaction::new(call), writes.to_vec()))
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        Reply::later(self.0.service.within(self.0.buckets.list(namespace, scope, after, limit)))
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        Reply::later(self.0.service.within(self.0.buckets.forget(namespace, scope)))
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        Reply::later(self.0.service.within(self.0.buckets.close(namespace)))
    }

    fn prefetch_bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        self.0.buckets.prefetch_bounds(limits)
    }

    fn wait_queues(&self) -> &WaitQueues {
        &self.0.buckets.wait_queues
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        Reply::later(self.0.service.within(self.0.buckets.usage_reader.activity(namespace, scope, after)))
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        let checked = check_keys(keys);
        Reply::later(self.0.service.within(async move {
            checked?;
            Ok(self.0.buckets.usage_reader.usage_at(keys).await?)
        }))
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        Reply::later(self.0.service.within(self.0.buckets.write_usage(namespace, scope)))
    }
}
