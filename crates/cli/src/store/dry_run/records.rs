use tollgate::store::Reply;
use tollgate::store::records::{
    Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write, check_keys,
};

use super::DryRunStore;

impl Records for DryRunStore {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        Reply::later(async move {
            check_keys(keys)?;
            let mut items = self.inner.get_many(keys).await?;
            let pending = self.pending();
            for (key, item) in keys.iter().zip(&mut items) {
                if let Some(changed) = pending.changed(key) {
                    *item = changed.clone();
                }
            }
            Ok(items)
        })
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        Reply::later(async move { self.buffer(writes).await })
    }

    /// New records come last, whatever the order.
    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        Reply::later(async move {
            let Page { items, next } = self.inner.query(query).await?;
            let pending = self.pending();
            let as_it_would_be = |item: Item| pending.changed(&item.key).cloned().unwrap_or(Some(item));
            let mut items: Vec<Item> = items.into_iter().filter_map(as_it_would_be).collect();
            if next.is_none() {
                items.extend(pending.added(None, query));
            }
            Ok(Page { items, next })
        })
    }

    /// New records come last, whatever the order.
    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        Reply::later(async move {
            let Page { items, next } = self.inner.find(index, query).await?;
            let pending = self.pending();
            let stays = |key: &ItemKey| pending.changed(key).is_none_or(Option::is_some);
            let mut items: Vec<ItemKey> = items.into_iter().filter(stays).collect();
            if next.is_none() {
                items.extend(pending.added(Some(index), query).into_iter().map(|item| item.key));
            }
            Ok(Page { items, next })
        })
    }

    /// Changed records are still listed, because the index of the store does not have them.
    fn unindexed(&self, after: Option<Cursor>) -> Reply<'_, Result<Page<ItemKey>, RecordsError>> {
        Reply::later(async move {
            let Page { items, next } = self.inner.unindexed(after).await?;
            let pending = self.pending();
            let stays = |key: &ItemKey| pending.changed(key).is_none_or(Option::is_some);
            let items = items.into_iter().filter(stays).collect();
            Ok(Page { items, next })
        })
    }
}
