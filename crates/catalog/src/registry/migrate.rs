//! Migrations from an earlier schema to the next.
//!
//! Each migration can run again from its beginning, because it may have been interrupted: it writes
//! absolute values, not increments.

use tollgate_store::Reply;
use tollgate_store::records::{Change, Index, ItemKey, Query, Test, Value, Write};

use super::takeover::UnindexedKeys;
use super::version::{SCHEMA, Version};
use super::{Finding, Namespace, Registry};
use crate::{CatalogError, Result, keys};

/// A step from one schema to the next.
struct MigrationStep {
    /// The first schema that it can start from.
    from: Version,
    /// The schema that it ends with.
    to: Version,
    run: for<'a> fn(&'a Registry) -> Reply<'a, Result<u64>>,
}

const STEPS: [MigrationStep; 1] =
    [MigrationStep { from: Version([0, 0, 0]), to: Version([1, 0, 0]), run: take_over }];

/// The plan of a migration.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::Registry;
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// assert_eq!(registry.migration().wait()?, None, "a new store has the current schema");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationPlan {
    /// The schema of the records now.
    pub from: String,
    /// The schema afterwards. There is no way back: programs that know only the earlier schema
    /// refuse the later one.
    pub to: String,
    /// The settings that this program cannot represent.
    pub lost: Vec<Finding>,
}

/// A migration that was run; [`Registry::migrate`] returns it.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::Registry;
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// for step in registry.migrate().wait()? {
///     println!("{} -> {}: {} records", step.from, step.to, step.records);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// The schema before.
    pub from: String,
    /// The schema after.
    pub to: String,
    /// The number of records that were changed.
    pub records: u64,
}

impl Registry {
    /// Returns what [`migrate`](Registry::migrate) would do; `None` if the records have the schema
    /// of this program.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that an unused store gets its schema version.
    ///
    /// # Errors
    ///
    /// [`TooNew`](CatalogError::TooNew), an unreadable record, or an error of the store.
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
            Ok(Some(MigrationPlan { from, to, lost: self.foreign(&self.unindexed().await?).await?.lost }))
        })
    }

    /// Migrates the records to the schema of this program, and returns the steps. No other program
    /// may change entities or limits meanwhile. It cannot be undone.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, part of the migration is applied; migrate again to continue.
    ///
    /// # Errors
    ///
    /// [`WouldLose`](CatalogError::WouldLose) if the records have settings that this program cannot
    /// represent: then nothing is changed. [`TooNew`](CatalogError::TooNew), an unreadable record,
    /// or an error of the store.
    pub fn migrate(&self) -> Reply<'_, Result<Vec<Migrated>>> {
        Reply::later(async move {
            match self.migration().await? {
                Some(MigrationPlan { lost, .. }) if !lost.is_empty() => Err(CatalogError::WouldLose(lost)),
                _ => self.migrate_anyway().await,
            }
        })
    }

    /// Migrates like [`migrate`](Registry::migrate), and drops the settings that this program
    /// cannot represent.
    ///
    /// # Cancel safety
    ///
    /// As [`migrate`](Registry::migrate).
    ///
    /// # Errors
    ///
    /// [`TooNew`](CatalogError::TooNew), an unreadable record, or an error of the store.
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

    /// Adds the fields that an entity of zae-limiter does not have. Returns false if there is no
    /// such entity.
    async fn complete_entity(&self, ns: &str, key: ItemKey) -> Result<bool> {
        let Some(item) = self.read(key.clone()).await? else { return Ok(false) };
        let children = self.count_children_of(ns, keys::entity_of(&key).unwrap_or_default()).await?;
        let mut changes = vec![Change::Set("children".into(), children.into())];
        // A move tests the parent that the entity had, so the record of an entity without a parent
        // needs the field.
        for (field, value) in [("parent_id", Value::Null), ("cascade", false.into())] {
            if !item.fields.contains_key(field) {
                changes.push(Change::Set(field.into(), value));
            }
        }
        Ok(self.write(&[Write::Change(key, changes, vec![Test::Exists])]).await?.is_ok())
    }

    async fn complete_entities_in(&self, ns: &str, unindexed: &UnindexedKeys) -> Result<u64> {
        let mut walk = unindexed.walk(self, Query::prefix(ns, keys::entity_partition(ns, "")));
        let mut changed = 0;
        while let Some(keys) = walk.next().await? {
            for key in keys.into_iter().filter(keys::is_entity) {
                changed += u64::from(self.complete_entity(ns, key).await?);
            }
        }
        Ok(changed)
    }
}

/// Migrates the records of zae-limiter (schema 0.x). There, an entity has no number of children and
/// can be deleted from above them; being disabled is a field of the limits; usage is in the
/// partition of its entity; and records need not be in an index.
fn take_over(registry: &Registry) -> Reply<'_, Result<u64>> {
    Reply::later(async move {
        let unindexed = registry.unindexed().await?;
        let mut changed = registry.translate(&registry.foreign(&unindexed).await?.writes).await?;
        for Namespace { id, .. } in registry.taken_over().await? {
            changed += registry.complete_entities_in(&id, &unindexed).await?;
            changed += registry.move_usage(&id, &unindexed).await?;
            changed += registry.index_missing(&id, &unindexed).await?;
        }
        Ok(changed)
    })
}
