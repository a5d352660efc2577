//! The takeover of records of zae-limiter: they are translated, or reported before they are lost.
//!
//! Records of zae-limiter need not be in the index of their namespace: its function for manifests
//! writes limits with one of the two keys of that index, and no list names them. So unindexed
//! records are searched for in the whole store, once; and they are indexed and listed last, because
//! an index lags behind and a migration may run again at once.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_store::records::{Change, Index, Item, ItemKey, Query, Test, Value, Write};
use tollgate_store::usage::{UsageRetention, Window, iso, usage_key, usage_place};

use super::foreign::{self, Foreign};
use super::{Namespace, NamespaceStatus, Registry};
use crate::usage::start_of;
use crate::{Result, keys};

/// How many keys are read at once.
const GETS_MAX: usize = 100;

impl Registry {
    /// Returns the records that are in no index of a namespace.
    pub(super) async fn unindexed(&self) -> Result<UnindexedKeys> {
        let mut unindexed = UnindexedKeys::default();
        let mut after = None;
        loop {
            let page = self.backend().unindexed(after).await?;
            for key in page.items {
                unindexed.0.entry(key.namespace().to_owned()).or_default().insert(key);
            }
            after = page.next;
            if after.is_none() {
                return Ok(unindexed);
            }
        }
    }

    /// Returns the settings of all namespaces that this program represents differently, or not at
    /// all.
    pub(super) async fn foreign(&self, unindexed: &UnindexedKeys) -> Result<Foreign> {
        let mut all = Foreign::default();
        for namespace in self.taken_over().await? {
            let found = self.foreign_in(&namespace, unindexed).await?;
            all.lost.extend(found.lost);
            all.writes.extend(found.writes);
        }
        Ok(all)
    }

    pub(super) async fn taken_over(&self) -> Result<Vec<Namespace>> {
        let namespaces = self.all_namespaces(keys::NSID_PREFIX).await?;
        Ok(namespaces.into_iter().filter(|it| it.status != NamespaceStatus::Purging).collect())
    }

    async fn foreign_in(&self, namespace: &Namespace, unindexed: &UnindexedKeys) -> Result<Foreign> {
        let mut found = Foreign::default();
        let mut walk = unindexed.walk(self, Query::all(namespace.id.as_str()));
        while let Some(keys) = walk.next().await? {
            keys.iter().for_each(|key| found.check_key(&namespace.name, key));
            let checked: Vec<ItemKey> = keys.into_iter().filter(foreign::is_checked).collect();
            for keys in checked.chunks(GETS_MAX) {
                let items = self.backend().get_many(keys).await?;
                items.iter().flatten().for_each(|item| found.check(&namespace.name, item));
            }
        }
        let lists = [keys::resources(&namespace.id), keys::entity_config_resources(&namespace.id)];
        let lists = self.backend().get_many(&lists).await?;
        found.list(&namespace.id, lists.iter().flatten());
        found.finish(&namespace.name, &namespace.id, self.backend().clock().now());
        Ok(found)
    }

    /// Indexes the unindexed records of a namespace. Returns how many.
    pub(super) async fn index_missing(&self, ns: &str, unindexed: &UnindexedKeys) -> Result<u64> {
        let mut changed = 0;
        for key in unindexed.of(ns) {
            let resource = key.sort.strip_prefix(keys::CONFIG_PREFIX);
            let index = keys::entity_of(key).zip(resource).map(|(entity, resource)| {
                Change::Place(Index::Custom, keys::entity_config_index_key(ns, entity, resource))
            });
            let changes = index.into_iter().collect();
            let write = Write::Change(key.clone(), changes, vec![Test::Exists]);
            changed += u64::from(self.write(&[write]).await?.is_ok());
        }
        Ok(changed)
    }

    /// Makes the writes. Returns how many; records that were deleted meanwhile do not count.
    pub(super) async fn translate(&self, writes: &[Write]) -> Result<u64> {
        let mut changed = 0;
        for write in writes {
            changed += u64::from(self.write(std::slice::from_ref(write)).await?.is_ok());
        }
        Ok(changed)
    }

    /// Moves the usage of a namespace to the partitions of this program. The function of
    /// zae-limiter goes on writing to the old ones, if it still runs; they are not read, because
    /// this program counts the same calls.
    pub(super) async fn move_usage(&self, ns: &str, unindexed: &UnindexedKeys) -> Result<u64> {
        let mut walk = unindexed.walk(self, Query::prefix(ns, keys::entity_partition(ns, "")));
        let (mut moved, retention) = (0, &self.0.settings.usage_retention);
        while let Some(keys) = walk.next().await? {
            let usage = |key: &ItemKey| key.sort.starts_with(keys::USAGE_PREFIX);
            let usage: Vec<ItemKey> = keys.into_iter().filter(usage).collect();
            for keys in usage.chunks(GETS_MAX) {
                for item in self.backend().get_many(keys).await?.into_iter().flatten() {
                    let Some(writes) = moved_usage(ns, &item, retention) else { continue };
                    moved += u64::from(self.write(&writes).await?.is_ok());
                }
            }
        }
        Ok(moved)
    }
}

/// The keys of records that are in no index of a namespace, by namespace.
#[derive(Default)]
pub(super) struct UnindexedKeys(BTreeMap<String, BTreeSet<ItemKey>>);

impl UnindexedKeys {
    fn of(&self, ns: &str) -> impl Iterator<Item = &ItemKey> {
        self.0.get(ns).into_iter().flatten()
    }

    /// Returns every key that a query in [`Index::Namespace`] should find.
    pub(super) fn walk<'a>(&'a self, registry: &'a Registry, query: Query) -> NamespaceKeys<'a> {
        NamespaceKeys { registry, unindexed: self, query: Some(query) }
    }
}

/// The keys of a namespace, page by page: the indexed ones, and with the first page the unindexed
/// ones.
pub(super) struct NamespaceKeys<'a> {
    registry: &'a Registry,
    unindexed: &'a UnindexedKeys,
    /// The query for the next page.
    query: Option<Query>,
}

impl NamespaceKeys<'_> {
    /// Returns the next page; `None` at the end. Each key comes once.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<ItemKey>>> {
        let Some(query) = &mut self.query else { return Ok(None) };
        let unindexed = self.unindexed.0.get(&query.partition);
        let is_first = query.after.is_none();
        let page = self.registry.backend().find(Index::Namespace, query).await?;
        let is_indexed = |key: &ItemKey| unindexed.is_none_or(|unindexed| !unindexed.contains(key));
        let mut keys: Vec<ItemKey> = page.items.into_iter().filter(is_indexed).collect();
        if is_first {
            let asked = |key: &&ItemKey| key.partition.starts_with(&query.prefix);
            keys.extend(unindexed.into_iter().flatten().filter(asked).cloned());
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => self.query = None,
        }
        Ok(Some(keys))
    }
}

/// Returns the writes that move a record of usage. If it is counted on in between, the next
/// migration moves it.
fn moved_usage(ns: &str, item: &Item, retention: &UsageRetention) -> Option<Vec<Write>> {
    let entity = keys::entity_of(&item.key)?;
    let (resource, name) = (item.text("resource")?, item.text("window")?);
    let window = Window::ALL.into_iter().find(|window| window.name() == name)?;
    let start = start_of(item)?;
    let text = |name: &str, text: &str| Change::Set(name.into(), Value::Text(text.into()));
    let begun = iso(start);
    let mut changes = vec![
        text("entity_id", entity),
        text("resource", resource),
        text("window", window.name()),
        text("window_start", &begun),
        Change::Place(Index::Resource, usage_place(ns, entity, resource, window, &begun)),
        Change::Expire(retention.expiry(window, start)),
    ];
    changes.extend(foreign::sums(&item.fields));
    let same = item.fields.get("total_events").map(|events| Test::Is("total_events".into(), events.clone()));
    let unchanged = same.unwrap_or(Test::Exists);
    let key = usage_key(ns, entity, resource, window, &begun);
    Some(vec![Write::Delete(item.key.clone(), vec![unchanged]), Write::Change(key, changes, Vec::new())])
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Span, Tick};

    use super::*;

    #[test]
    fn moved_usage_expires_by_the_retention_setting() {
        let retention = UsageRetention::new(Span::from_secs(10 * 86_400), None, None);
        let (start, begun) = (Tick::from_secs(1_772_323_200), "2026-03-01T00:00:00Z");
        for window in Window::ALL {
            let sort = format!("{}gpt-4#{}#{begun}", keys::USAGE_PREFIX, window.name());
            let mut item = Item::new(ItemKey::new(keys::entity_partition("ns", "user"), sort));
            let fields = [("resource", "gpt-4"), ("window", window.name()), ("window_start", begun)];
            item.fields.extend(fields.map(|(name, text)| (name.into(), Value::Text(text.into()))));
            let writes = moved_usage("ns", &item, &retention).expect("it is a record of usage");
            let moved = writes[1].applied(None).expect("it is written");
            assert_eq!(moved.expires, retention.expiry(window, start), "{window:?}");
        }
    }
}
