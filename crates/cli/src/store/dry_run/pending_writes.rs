use std::collections::{BTreeMap, BTreeSet};

use tollgate::store::records::{Index, Item, ItemKey, Query};

/// The writes of a dry run, which are not made.
#[derive(Default)]
pub(super) struct PendingWrites {
    /// Each changed record, as it would be; `None` if it would be deleted.
    pub(super) records: BTreeMap<ItemKey, Option<Item>>,
    /// The changed records that are not in the store.
    pub(super) new: BTreeSet<ItemKey>,
    /// The namespaces and scopes whose buckets would be deleted.
    pub(super) forgotten: BTreeSet<String>,
}

impl PendingWrites {
    /// Returns the new records that match a query, in its order.
    pub(super) fn added(&self, index: Option<Index>, query: &Query) -> Vec<Item> {
        let new = self.new.iter().filter_map(|key| self.records.get(key)?.as_ref());
        let mut found: Vec<(&str, &Item)> = new
            .filter_map(|item| Some((sort_in(item, index, &query.partition)?, item)))
            .filter(|(sort, _)| sort.starts_with(&query.prefix))
            .collect();
        found.sort_by_key(|(sort, _)| *sort);
        found.into_iter().map(|(_, item)| item.clone()).collect()
    }

    /// Returns the record as it would be; the outer `None` if it is unchanged.
    pub(super) fn changed(&self, key: &ItemKey) -> Option<&Option<Item>> {
        self.records.get(key)
    }
}

/// Returns the sort key of a record in a partition of the records or of an index.
fn sort_in<'a>(item: &'a Item, index: Option<Index>, partition: &str) -> Option<&'a str> {
    let (found, sort) = match index {
        None => (item.key.partition.as_str(), item.key.sort.as_str()),
        Some(Index::Namespace) => (item.key.namespace(), item.key.partition.as_str()),
        Some(index) => {
            let (_, entry) = item.indexed.iter().find(|(other, _)| *other == index)?;
            (entry.partition.as_str(), entry.sort.as_str())
        }
    };
    (found == partition).then_some(sort)
}
