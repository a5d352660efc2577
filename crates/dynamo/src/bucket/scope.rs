//! Listing and forgetting the buckets of a scope.

use aws_sdk_dynamodb::types::ReturnValue;
use tollgate_core::Span;
use tollgate_store::records::{Cursor, PAGE_MAX, Page};
use tollgate_store::{BucketStatus, FORGET_MAX, Freed, Scope, StoreError, join_all};

use super::Buckets;
use super::address::Address;
use super::index::{self, FoundItems};
use super::send::closed_key;
use super::snapshot;
use super::values::number;
use crate::service::CallFailure;
use crate::table::TTL;

/// How many items are deleted at once.
const DELETED_AT_ONCE: usize = 25;

/// For how long it is remembered that a namespace is closed: longer than any client uses what it cached of it.
const CLOSED_FOR: Span = Span::from_secs(7 * 86_400);

impl Buckets {
    /// Returns the status of the buckets of a scope.
    pub(crate) async fn list(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<BucketStatus>, StoreError> {
        self.jobs.await_all_detached().await;
        let start = after.map(|after| index::start_of(namespace, scope, &after)).transpose()?;
        let limit = limit.clamp(1, PAGE_MAX);
        let found = index::find(&self.service, namespace, scope, start, limit).await?;
        let FoundItems { items, next } = found;
        // A bucket in several items is listed at its first.
        let firsts: Vec<Address> =
            items.into_iter().filter(|(_, shard)| *shard == 0).map(|(address, _)| address).collect();
        let mut statuses = Vec::new();
        for (address, snapshot) in firsts.iter().zip(self.reader.merged_buckets(&firsts).await?) {
            let now = self.service.clock.now();
            if let (Some((entity, resource)), Some(snapshot)) = (address.key.pair(), snapshot) {
                let limits = snapshot.stored.bucket.peek(&snapshot.stored.limits, now);
                statuses.push(BucketStatus { entity: entity.into(), resource: resource.into(), limits });
            }
        }
        Ok(Page { items: statuses, next: next.map(|next| index::cursor_of(namespace, scope, &next)) })
    }

    /// Deletes the buckets of a scope, some at a time, and returns how many there were.
    pub(crate) async fn forget(&self, namespace: &str, scope: Scope<'_>) -> Result<usize, StoreError> {
        self.jobs.await_all_detached().await;
        let (mut start, mut forgotten) = (None, 0);
        while forgotten < FORGET_MAX {
            let limit = FORGET_MAX - forgotten;
            let FoundItems { items, next } =
                index::find(&self.service, namespace, scope, start, limit).await?;
            for some in items.chunks(DELETED_AT_ONCE) {
                let deletes = some.iter().map(|(address, shard)| self.delete(address, *shard));
                for was_there in join_all(deletes.collect()).await {
                    forgotten += usize::from(was_there?);
                }
            }
            match next {
                Some(next) => start = Some(next),
                None => break,
            }
        }
        Ok(forgotten)
    }

    async fn delete(&self, address: &Address, shard: u32) -> Result<bool, StoreError> {
        let shards = &self.submitter.items.shards;
        let queue = shards.queue(address, shard);
        let mut state = queue.state.lock().await;
        let delete = || {
            let delete = self.service.client.delete_item().table_name(&self.service.table);
            delete.set_key(Some(snapshot::key(address, shard))).return_values(ReturnValue::AllOld).send()
        };
        let deleted = self.service.with_retries(delete).await.map_err(CallFailure::store_error)?;
        state.forget();
        state.unknown = None;
        drop(state);
        shards.forget(address);
        self.submitter.prefetcher.detach_bucket(&address.namespace, &address.key);
        self.wait_queues.notify(&Freed::all(&address.namespace, &address.key));
        Ok(deleted.attributes.is_some())
    }

    /// Closes a namespace: no bucket is made in it any more. The mark expires once no client can have a call for the
    /// namespace.
    pub(crate) async fn close(&self, namespace: &str) -> Result<(), StoreError> {
        let until = (self.service.clock.now() + CLOSED_FOR).as_micros() / 1_000_000;
        let mut mark = closed_key(namespace);
        mark.insert(TTL.into(), number(until));
        let put = || {
            let put = self.service.client.put_item().table_name(&self.service.table);
            put.set_item(Some(mark.clone())).send()
        };
        self.service.with_retries(put).await.map_err(CallFailure::store_error).map(drop)
    }

    /// Writes down the usage of a scope.
    pub(crate) async fn write_usage(&self, namespace: &str, scope: Scope<'_>) -> Result<(), StoreError> {
        self.jobs.await_all_detached().await;
        let mut start = None;
        loop {
            let FoundItems { items, next } =
                index::find(&self.service, namespace, scope, start, PAGE_MAX).await?;
            for (address, _) in items.iter().filter(|(_, shard)| *shard == 0) {
                self.usage_writer.write(address).await?;
            }
            match next {
                Some(next) => start = Some(next),
                None => return Ok(()),
            }
        }
    }
}
