//! Migrations: from the layout of an earlier version to that of the next.
//!
//! Each can be run again from its beginning, because it may have been interrupted: it writes what is, not how much more.

use tollgate_store::Reply;
use tollgate_store::records::{Change, Index, ItemKey, Query, Test, Value, Write};

use super::takeover::Strays;
use super::version::{SCHEMA, Version};
use super::{Finding, Namespace, Registry};
use crate::{CatalogError, Result, keys};

/// A step from one layout to the next.
struct MigrationStep {
    /// The first layout that it can start from.
    from: Version,
    /// The layout that it ends with.
    to: Version,
    run: for<'a> fn(&'a Registry) -> Reply<'a, Result<u64>>,
}

const STEPS: [MigrationStep; 1] =
    [MigrationStep { from: Version([0, 0, 0]), to: Version([1, 0, 0]), run: take_over }];

/// What a migration would do, before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationPlan {
    /// The layout of the records now.
    pub from: String,
    /// The layout afterwards. There is no way back: programs that know the earlier layout only refuse the later one.
    pub to: String,
    /// What the records say that this program has no form for.
    pub lost: Vec<Finding>,
}

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
    /// What [`migrate`](Registry::migrate) would do; `None` if the records have the layout of this program.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed, but that a store no program used before gets its version.
    ///
    /// # Errors
    ///
    /// [`TooNew`](CatalogError::TooNew), a record that cannot be read, or the store's.
    pub fn migration(&self) -> Reply<'_, Result<Option<MigrationPlan>>> {
        Reply::later(async move {
            let record = self.version().await?;
            let (found, from, to) = (record.schema()?, record.schema_version, SCHEMA.to_string());
            if found > SCHEMA {
                return Err(CatalogError::TooNew { found: from, known: to });
            }
            if found == SCHEMA {
                return Ok(None);
            }
            Ok(Some(MigrationPlan { from, to, lost: self.foreign(&self.strays().await?).await?.lost }))
        })
    }

    /// Brings the records to the layout of this program, and says what was done. No program may change entities or limits
    /// meanwhile. It cannot be undone.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, part of it is applied; migrate again to go on.
    ///
    /// # Errors
    ///
    /// [`WouldLose`](CatalogError::WouldLose) if the records say something that this program has no form for: nothing is
    /// changed then. [`TooNew`](CatalogError::TooNew), a record that cannot be read, or the store's.
    pub fn migrate(&self) -> Reply<'_, Result<Vec<Migrated>>> {
        Reply::later(async move {
            match self.migration().await? {
                Some(MigrationPlan { lost, .. }) if !lost.is_empty() => Err(CatalogError::WouldLose(lost)),
                _ => self.migrate_anyway().await,
            }
        })
    }

    /// As [`migrate`](Registry::migrate), and what the records say that this program has no form for does not hold any more.
    ///
    /// # Cancel safety
    ///
    /// As [`migrate`](Registry::migrate).
    ///
    /// # Errors
    ///
    /// [`TooNew`](CatalogError::TooNew), a record that cannot be read, or the store's.
    pub fn migrate_anyway(&self) -> Reply<'_, Result<Vec<Migrated>>> {
        Reply::later(async move {
            let mut done = Vec::new();
            loop {
                let record = self.version().await?;
                let found = record.schema()?;
                if found == SCHEMA {
                    return Ok(done);
                }
                let next = STEPS.iter().find(|it| it.from <= found && found < it.to);
                let (from, known) = (record.schema_version, SCHEMA.to_string());
                let Some(step) = next.filter(|_| found < SCHEMA) else {
                    return Err(CatalogError::TooNew { found: from, known });
                };
                let records = (step.run)(self).await?;
                let was = Test::Is("schema_version".into(), from.as_str().into());
                let changes = self.version_item(step.to).fields;
                let changes = changes.into_iter().map(|(name, value)| Change::Set(name, value)).collect();
                // If another process migrates, too, one of the two finds this done.
                let write = Write::Change(keys::schema_version(), changes, vec![was]);
                if self.write(&[write]).await?.is_ok() {
                    done.push(Migrated { from, to: step.to.to_string(), records });
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
        // A move tests that the entity still has the parent it had, so the record of one without a parent must say so.
        for (field, value) in [("parent_id", Value::Null), ("cascade", false.into())] {
            if !item.fields.contains_key(field) {
                changes.push(Change::Set(field.into(), value));
            }
        }
        Ok(self.write(&[Write::Change(key, changes, vec![Test::Exists])]).await?.is_ok())
    }

    async fn complete_entities_in(&self, ns: &str, strays: &Strays) -> Result<u64> {
        let mut walk = strays.walk(self, Query::prefix(ns, keys::entity_partition(ns, "")));
        let mut changed = 0;
        while let Some(keys) = walk.next().await? {
            for key in keys.into_iter().filter(keys::is_entity) {
                changed += u64::from(self.complete_entity(ns, key).await?);
            }
        }
        Ok(changed)
    }
}

/// Until 1.0.0 the records were those of the original: an entity did not say how many children it has, and could be deleted
/// from above them; what is disabled was a field of its limits; usage was in the partition of its entity; records need not be
/// in an index.
fn take_over(registry: &Registry) -> Reply<'_, Result<u64>> {
    Reply::later(async move {
        let strays = registry.strays().await?;
        let mut changed = registry.translate(&registry.foreign(&strays).await?.writes).await?;
        for Namespace { id, .. } in registry.taken_over().await? {
            changed += registry.complete_entities_in(&id, &strays).await?;
            changed += registry.move_usage(&id, &strays).await?;
            changed += registry.index_strays(&id, &strays).await?;
        }
        Ok(changed)
    })
}
