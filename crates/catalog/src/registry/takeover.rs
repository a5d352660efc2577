//! Taking over records of the original: what they say is said in ours, or told before it is lost.

use tollgate_store::records::{Change, Index, Item, ItemKey, Query, Test, Value, Write};
use tollgate_store::usage::{USAGE_KEPT, iso, usage_key, usage_place};

use super::foreign::{self, Foreign};
use super::{Namespace, NamespaceStatus, Registry};
use crate::usage::start_of;
use crate::{Result, keys};

/// How many keys are read at once.
const GETS_MAX: usize = 100;

impl Registry {
    /// What the records of all namespaces say that ours say otherwise, or not at all.
    pub(super) async fn foreign(&self) -> Result<Foreign> {
        let mut all = Foreign::default();
        for namespace in self.taken_over().await? {
            let found = self.foreign_in(&namespace).await?;
            all.lost.extend(found.lost);
            all.writes.extend(found.writes);
        }
        Ok(all)
    }

    pub(super) async fn taken_over(&self) -> Result<Vec<Namespace>> {
        let namespaces = self.all_namespaces(keys::NSID_PREFIX).await?;
        Ok(namespaces.into_iter().filter(|it| it.status != NamespaceStatus::Purging).collect())
    }

    async fn foreign_in(&self, namespace: &Namespace) -> Result<Foreign> {
        let mut found = Foreign::default();
        let mut query = Query::all(namespace.id.as_str());
        loop {
            let page = self.backend().find(Index::Namespace, &query).await?;
            page.items.iter().for_each(|key| found.note_key(&namespace.name, key));
            let told: Vec<ItemKey> = page.items.into_iter().filter(foreign::is_told).collect();
            for keys in told.chunks(GETS_MAX) {
                let items = self.backend().get_many(keys).await?;
                items.iter().flatten().for_each(|item| found.note(&namespace.name, item));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        found.finish(&namespace.name, &namespace.id, self.backend().clock().now());
        Ok(found)
    }

    /// Makes the writes, and counts them. What is gone meanwhile has nothing to say.
    pub(super) async fn translate(&self, writes: &[Write]) -> Result<u64> {
        let mut changed = 0;
        for write in writes {
            changed += u64::from(self.write(std::slice::from_ref(write)).await?.is_ok());
        }
        Ok(changed)
    }

    /// Moves the usage of a namespace to where ours is. The function of the original goes on writing where it was, if it
    /// still runs; nothing reads that, because ours counts the same calls.
    pub(super) async fn move_usage(&self, ns: &str) -> Result<u64> {
        let mut query = Query::prefix(ns, keys::entity_partition(ns, ""));
        let mut moved = 0;
        loop {
            let page = self.backend().find(Index::Namespace, &query).await?;
            let usage = |key: &ItemKey| key.sort.starts_with(keys::USAGE_PREFIX);
            let usage: Vec<ItemKey> = page.items.into_iter().filter(usage).collect();
            for keys in usage.chunks(GETS_MAX) {
                for item in self.backend().get_many(keys).await?.into_iter().flatten() {
                    let Some(writes) = moved_usage(ns, &item) else { continue };
                    moved += u64::from(self.write(&writes).await?.is_ok());
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(moved),
            }
        }
    }
}

/// The writes that move a record of usage. Should it be counted on in between, it is moved when this is run again.
fn moved_usage(ns: &str, item: &Item) -> Option<Vec<Write>> {
    let entity = keys::entity_of(&item.key)?;
    let (resource, name) = (item.text("resource")?, item.text("window")?);
    let (window, kept) = USAGE_KEPT.into_iter().find(|(window, _)| window.name() == name)?;
    let start = start_of(item)?;
    let text = |name: &str, text: &str| Change::Set(name.into(), Value::Text(text.into()));
    let begun = iso(start);
    let mut changes = vec![
        text("entity_id", entity),
        text("resource", resource),
        text("window", window.name()),
        text("window_start", &begun),
        Change::Place(Index::Resource, usage_place(ns, entity, resource, window, &begun)),
        Change::Expire(Some(start + kept)),
    ];
    changes.extend(foreign::sums(&item.fields));
    let same = item.fields.get("total_events").map(|events| Test::Is("total_events".into(), events.clone()));
    let there = same.unwrap_or(Test::Exists);
    let key = usage_key(ns, entity, resource, window, &begun);
    Some(vec![Write::Delete(item.key.clone(), vec![there]), Write::Change(key, changes, Vec::new())])
}
