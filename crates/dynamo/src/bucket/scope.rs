//! Looking at and forgetting many buckets at once.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::ReturnValue;
use tollgate_core::Span;
use tollgate_store::records::{Cursor, PAGE_MAX, Page};
use tollgate_store::{BucketStatus, FORGET_MAX, Freed, Scope, StoreError, join_all};

use super::address::{Address, space};
use super::send::closed_key;
use super::snapshot;
use super::values::{number, read_text, text};
use crate::inner::DynamoInner;
use crate::service::{Attributes, CallFailure};
use crate::table::TTL;

/// How many items are deleted at once.
const DELETED_AT_ONCE: usize = 25;

/// For how long it is remembered that a namespace is closed: longer than any client goes on with what it knew of it.
const CLOSED_FOR: Span = Span::from_secs(7 * 86_400);

/// Where in an index the buckets of a scope are: the index, its partition, and what their sort keys start with.
struct IndexRange {
    index: &'static str,
    partition: String,
    prefix: &'static str,
}

/// Items of a scope, and where to go on.
pub(super) struct FoundItems {
    pub(super) items: Vec<(Address, u32)>,
    pub(super) next: Option<Attributes>,
}

impl DynamoInner {
    /// How the buckets of a scope stand.
    pub(crate) async fn buckets(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<BucketStatus>, StoreError> {
        self.await_all_detached().await;
        let start = after.map(|after| self.start_of(namespace, scope, &after)).transpose()?;
        let FoundItems { items, next } = self.find(namespace, scope, start, limit.clamp(1, PAGE_MAX)).await?;
        // A bucket in several items is listed at its first.
        let firsts: Vec<Address> =
            items.into_iter().filter(|(_, shard)| *shard == 0).map(|(address, _)| address).collect();
        let mut statuses = Vec::new();
        for (address, image) in firsts.iter().zip(self.merged_buckets(&firsts).await?) {
            let now = self.service.clock.now();
            if let (Some((entity, resource)), Some(image)) = (address.key.pair(), image) {
                let limits = image.kept.bucket.peek(&image.kept.limits, now);
                statuses.push(BucketStatus { entity: entity.into(), resource: resource.into(), limits });
            }
        }
        Ok(Page { items: statuses, next: next.map(|next| self.cursor_of(namespace, scope, &next)) })
    }

    /// Deletes the buckets of a scope, some at a time, and says how many there were.
    pub(crate) async fn forget(&self, namespace: &str, scope: Scope<'_>) -> Result<usize, StoreError> {
        self.await_all_detached().await;
        let (mut start, mut forgotten) = (None, 0);
        while forgotten < FORGET_MAX {
            let FoundItems { items, next } =
                self.find(namespace, scope, start, FORGET_MAX - forgotten).await?;
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
        let lane = self.buckets.part_lane(address, shard);
        let mut state = lane.state.lock().await;
        let delete = || {
            let delete = self.service.client.delete_item().table_name(&self.service.table);
            delete.set_key(Some(snapshot::key(address, shard))).return_values(ReturnValue::AllOld).send()
        };
        let deleted = self.service.with_retries(delete).await.map_err(CallFailure::store_error)?;
        state.forget();
        state.unsure = None;
        drop(state);
        self.buckets.forget(address);
        self.wait_queues.notify(&Freed::all(&address.namespace, &address.key));
        Ok(deleted.attributes.is_some())
    }

    /// Makes no bucket in this namespace any more. The mark is gone itself once no client can have a call for the namespace.
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
        self.await_all_detached().await;
        let mut start = None;
        loop {
            let FoundItems { items, next } = self.find(namespace, scope, start, PAGE_MAX).await?;
            for (address, _) in items.iter().filter(|(_, shard)| *shard == 0) {
                self.write_usage_of(address).await?;
            }
            match next {
                Some(next) => start = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The items of a scope, in the order of an index.
    pub(super) async fn find(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        start: Option<Attributes>,
        limit: usize,
    ) -> Result<FoundItems, StoreError> {
        let Some(shelf) = shelf_of(namespace, scope) else {
            let Scope::Bucket(entity, resource) = scope else {
                return Ok(FoundItems { items: Vec::new(), next: None });
            };
            return Ok(FoundItems {
                items: vec![(Address::pair(namespace, entity, resource), 0)],
                next: None,
            });
        };
        let names =
            BTreeMap::from([("#p", format!("{}PK", shelf.index)), ("#s", format!("{}SK", shelf.index))]);
        let condition = if shelf.prefix.is_empty() { "#p = :p" } else { "#p = :p AND begins_with(#s, :s)" };
        let query = || {
            let mut query = self
                .service
                .client
                .query()
                .table_name(&self.service.table)
                .index_name(shelf.index)
                .key_condition_expression(condition)
                .expression_attribute_names("#p", &names["#p"])
                .expression_attribute_values(":p", text(&shelf.partition))
                .set_exclusive_start_key(start.clone())
                .limit(i32::try_from(limit).unwrap_or(i32::MAX));
            if !shelf.prefix.is_empty() {
                query = query.expression_attribute_names("#s", &names["#s"]);
                query = query.expression_attribute_values(":s", text(shelf.prefix));
            }
            query.send()
        };
        let page = self.service.with_retries(query).await.map_err(CallFailure::store_error)?;
        let items = page.items.unwrap_or_default();
        let items = items.iter().filter_map(|item| Address::parse(read_text(item.get("PK"))?));
        Ok(FoundItems { items: items.collect(), next: page.last_evaluated_key.filter(|key| !key.is_empty()) })
    }

    /// Where a list of a scope goes on, as callers have it.
    pub(super) fn cursor_of(&self, namespace: &str, scope: Scope<'_>, next: &Attributes) -> Cursor {
        let part = |name: &str| read_text(next.get(name)).unwrap_or_default();
        let shelf = shelf_of(namespace, scope);
        let sort = shelf.map_or(String::new(), |shelf| part(&format!("{}SK", shelf.index)).to_owned());
        Cursor::of(&[&sort, part("PK"), part("SK")])
    }

    pub(super) fn start_of(
        &self,
        namespace: &str,
        scope: Scope<'_>,
        after: &Cursor,
    ) -> Result<Attributes, StoreError> {
        let [sort, partition, key] = after.parts()?;
        let mut start = Attributes::from([("PK".to_owned(), text(partition)), ("SK".to_owned(), text(key))]);
        if let Some(shelf) = shelf_of(namespace, scope) {
            start.insert(format!("{}PK", shelf.index), text(&shelf.partition));
            start.insert(format!("{}SK", shelf.index), text(sort));
        }
        Ok(start)
    }
}

/// `None` for a scope that is one bucket.
fn shelf_of(namespace: &str, scope: Scope<'_>) -> Option<IndexRange> {
    let space = space(namespace);
    Some(match scope {
        Scope::Entity(entity) => {
            IndexRange { index: "GSI3", partition: format!("{space}/ENTITY#{entity}"), prefix: "BUCKET#" }
        }
        Scope::Resource(resource) => {
            IndexRange { index: "GSI2", partition: format!("{space}/RESOURCE#{resource}"), prefix: "BUCKET#" }
        }
        Scope::All => IndexRange { index: "GSI4", partition: space, prefix: "" },
        Scope::Bucket(..) => return None,
    })
}
