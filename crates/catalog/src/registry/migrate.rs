//! Migrations: from the layout of an earlier version to that of the next.
//!
//! Each can be run again from its beginning, because it may have been interrupted: it writes what is, not how much more.

use tollgate_store::Reply;
use tollgate_store::records::{Change, Index, ItemKey, Query, Test, Value, Write};

use super::version::{SCHEMA, Version};
use super::{NamespaceStatus, Registry};
use crate::{CatalogError, Result, keys};

/// A step from one layout to the next.
struct Migration {
    /// The first layout that it can start from.
    from: Version,
    /// The layout that it ends with.
    to: Version,
    run: for<'a> fn(&'a Registry) -> Reply<'a, Result<u64>>,
}

const MIGRATIONS: [Migration; 1] =
    [Migration { from: Version([0, 0, 0]), to: Version([1, 0, 0]), run: complete_entities }];

/// A migration that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// The layout before.
    pub from: String,
    /// The layout after.
    pub to: String,
    /// How many records were changed.
    pub records: u64,
}

impl Registry {
    /// Brings the records to the layout of this program, and says what was done. Nobody may change entities meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, part of it is applied; migrate again to go on.
    ///
    /// # Errors
    ///
    /// [`TooNew`](CatalogError::TooNew), a record that cannot be read, or the store's.
    pub fn migrate(&self) -> Reply<'_, Result<Vec<Migrated>>> {
        Reply::later(async move {
            let mut done = Vec::new();
            loop {
                let record = self.version().await?;
                let found = record.schema()?;
                if found == SCHEMA {
                    return Ok(done);
                }
                let next = MIGRATIONS.iter().find(|it| it.from <= found && found < it.to);
                let (from, known) = (record.schema_version, SCHEMA.to_string());
                let Some(migration) = next.filter(|_| found < SCHEMA) else {
                    return Err(CatalogError::TooNew { found: from, known });
                };
                let records = (migration.run)(self).await?;
                let was = Test::Is("schema_version".into(), from.as_str().into());
                let changes = self.version_item(migration.to).fields;
                let changes = changes.into_iter().map(|(name, value)| Change::Set(name, value)).collect();
                // If somebody else migrates, too, one of the two finds this done.
                let write = Write::Change(keys::schema_version(), changes, vec![was]);
                if self.write(&[write]).await?.is_ok() {
                    done.push(Migrated { from, to: migration.to.to_string(), records });
                }
            }
        })
    }

    async fn count_children_of(&self, ns: &str, id: &str) -> Result<i64> {
        let mut query = Query::all(keys::children_partition(ns, id));
        let mut count = 0;
        loop {
            let page = self.backend().find(Index::Children, &query).await?;
            count += page.items.len() as i64;
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(count),
            }
        }
    }

    /// Adds what an entity does not say, and says whether there was one.
    async fn complete_entity(&self, ns: &str, key: ItemKey) -> Result<bool> {
        let Some(item) = self.read(key.clone()).await? else { return Ok(false) };
        let children = self.count_children_of(ns, keys::entity_of(&key).unwrap_or_default()).await?;
        let mut changes = vec![Change::Set("children".into(), children.into())];
        // Whoever is moved is tested for the parent it had, and for that it must say that it has none.
        for (field, value) in [("parent_id", Value::Null), ("cascade", false.into())] {
            if !item.fields.contains_key(field) {
                changes.push(Change::Set(field.into(), value));
            }
        }
        Ok(self.write(&[Write::Change(key, changes, vec![Test::Exists])]).await?.is_ok())
    }

    async fn complete_entities_in(&self, ns: &str) -> Result<u64> {
        let mut query = Query::prefix(ns, keys::entity_partition(ns, ""));
        let mut changed = 0;
        loop {
            let page = self.backend().find(Index::Namespace, &query).await?;
            for key in page.items.into_iter().filter(keys::is_entity) {
                changed += u64::from(self.complete_entity(ns, key).await?);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(changed),
            }
        }
    }
}

/// Until 1.0.0 an entity did not say how many children it has, and could be deleted from above them.
fn complete_entities(registry: &Registry) -> Reply<'_, Result<u64>> {
    Reply::later(async move {
        let namespaces = registry.all_namespaces(keys::NSID_PREFIX).await?;
        let mut changed = 0;
        for namespace in namespaces.iter().filter(|it| it.status != NamespaceStatus::Purging) {
            changed += registry.complete_entities_in(&namespace.id).await?;
        }
        Ok(changed)
    })
}
