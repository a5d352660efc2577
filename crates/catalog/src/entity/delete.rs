//! The deletion of entities, with all of their records.
//!
//! The records may be more than fit into one transaction. So an entity is marked first, from when
//! on it gets no children; then its records are deleted, and the entity itself last. After an
//! interruption the caller deletes it again, and continues from there. Every transaction checks the
//! mark: an entity that another caller deleted, and then created again, is left alone.

use tollgate_store::records::{Change, Fields, ItemKey, Query, Test, WRITES_MAX, Write};
use tollgate_store::usage::usage_partition;
use tollgate_store::{FORGET_MAX, Reply, Scope};

use super::ancestors::is_deleting;
use super::{DELETING, Entity};
use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, DEFAULT_RESOURCE, Level, Result, keys, name, random};

/// How many records are deleted in one transaction, beside the checks of the namespace and the
/// mark.
const BATCH: usize = WRITES_MAX - 2;

impl Catalog {
    /// Deletes an entity: its limits, its buckets, its usage and itself. Its audit events stay. Of
    /// an entity that was never created, all records are deleted.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, some records may be deleted; delete it again to continue.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound) if it has no record, or if another caller
    /// deleted it at the same time; [`HasChildren`](CatalogError::HasChildren), an invalid name, a
    /// deleted namespace, or an error of the store.
    pub fn delete_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<()>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            for _ in 0..ATTEMPTS_MAX {
                if let Some(mark) = self.mark_deleting(id).await? {
                    return self.delete_marked(id, mark).await;
                }
                if self.delete_implicit(id).await? {
                    return Ok(());
                }
            }
            Err(CatalogError::Contended(format!("entity {id:?}")))
        })
    }

    /// Marks an entity, unless an unfinished deletion has marked it, and returns the mark; `None`
    /// if it does not exist.
    async fn mark_deleting(&self, id: &str) -> Result<Option<i64>> {
        let key = keys::entity(self.namespace_id(), id);
        for _ in 0..ATTEMPTS_MAX {
            let Some(item) = self.get(key.clone()).await? else { return Ok(None) };
            if is_deleting(&item) {
                return Ok(item.int(DELETING));
            }
            let children = Entity::of(id, &item).children;
            if children > 0 {
                return Err(CatalogError::HasChildren { entity: id.into(), children });
            }
            // A random mark: an entity that is created again and marked again has another one.
            let mark = i64::from_be_bytes(random::bytes()?) & i64::MAX | 1;
            let none = |field: &str| Test::AtMost(field.into(), 0);
            let tests = vec![Test::Exists, none("children"), none(DELETING)];
            let mut tx = self.transaction();
            tx.push(Write::Change(key.clone(), vec![Change::Set(DELETING.into(), mark.into())], tests));
            if let Commit::Done = tx.commit().await? {
                return Ok(Some(mark));
            }
        }
        Err(CatalogError::Contended(format!("entity {id:?}")))
    }

    async fn delete_marked(&self, id: &str, mark: i64) -> Result<()> {
        let ns = self.namespace_id();
        let not_found = || CatalogError::EntityNotFound(id.into());
        let has_mark = || vec![Test::Is(DELETING.into(), mark.into())];
        self.delete_stored(id, &Write::Check(keys::entity(ns, id), has_mark())).await?;
        let item = self.get(keys::entity(ns, id)).await?.ok_or_else(not_found)?;
        let mut tx = self.transaction();
        tx.push(Write::Delete(keys::entity(ns, id), has_mark()));
        tx.push(Write::Delete(keys::entity_switch(ns, id), Vec::new()));
        // A marked entity is not moved, so the parent is the one that was read.
        if let Some(parent) = Entity::of(id, &item).parent {
            tx.push(self.decrement_children(&parent, Vec::new()).await?);
        }
        tx.audit(Subject::Entity(id), Action::EntityDeleted, None, Fields::new())?;
        match tx.commit().await? {
            Commit::Done => Ok(()),
            Commit::Failed(_) => Err(not_found()),
        }
    }

    /// Deletes the records of an entity that was never created, which may have limits, usage and
    /// buckets all the same. Returns false if it was created meanwhile.
    async fn delete_implicit(&self, id: &str) -> Result<bool> {
        self.backend().write_usage(self.namespace_id(), Scope::Entity(id)).await?;
        if !self.has_stored(id).await? {
            return Err(CatalogError::EntityNotFound(id.into()));
        }
        let is_implicit = Write::Check(keys::entity(self.namespace_id(), id), vec![Test::Absent]);
        // The event comes first: were it last, an interrupted deletion could leave nothing for a
        // retry to find.
        let mut tx = self.transaction();
        tx.push(is_implicit.clone());
        tx.push(Write::Delete(keys::entity_switch(self.namespace_id(), id), Vec::new()));
        tx.audit(Subject::Entity(id), Action::EntityDeleted, None, Fields::new())?;
        if let Commit::Failed(_) = tx.commit().await? {
            return Ok(false);
        }
        self.delete_stored(id, &is_implicit).await?;
        Ok(true)
    }

    async fn has_stored(&self, id: &str) -> Result<bool> {
        let ns = self.namespace_id();
        for partition in [keys::entity_partition(ns, id), usage_partition(ns, id)] {
            let records = self.backend().query(&Query { limit: 1, ..Query::all(partition) }).await?;
            if !records.items.is_empty() {
                return Ok(true);
            }
        }
        let scope = Scope::Entity(id);
        Ok(!self.backend().buckets(self.namespace_id(), scope, None, 1).await?.items.is_empty())
    }

    /// Deletes the limits, the buckets and the usage of an entity, as long as the check holds.
    async fn delete_stored(&self, id: &str, check: &Write) -> Result<()> {
        let ns = self.namespace_id();
        let limits = Query::prefix(keys::entity_partition(ns, id), keys::CONFIG_PREFIX);
        for level in self.keys_of(limits).await? {
            let level = match level.sort.strip_prefix(keys::CONFIG_PREFIX).unwrap_or_default() {
                DEFAULT_RESOURCE => Level::Entity(id),
                resource => Level::EntityResource(id, resource),
            };
            self.delete_config(level, Some(check.clone())).await?;
        }
        while self.backend().forget(self.namespace_id(), Scope::Entity(id)).await? >= FORGET_MAX {}
        let mut usage = Vec::new();
        // The Lambda function of zae-limiter, if it still runs, counts in the partition of the
        // entity.
        for partition in [usage_partition(ns, id), keys::entity_partition(ns, id)] {
            usage.extend(self.keys_of(Query::prefix(partition, keys::USAGE_PREFIX)).await?);
        }
        for batch in usage.chunks(BATCH) {
            let mut tx = self.transaction();
            tx.push(check.clone());
            tx.extend(batch.iter().map(|key| Write::Delete(key.clone(), Vec::new())));
            tx.commit().await?;
        }
        Ok(())
    }

    /// Returns the keys of the records that a query finds.
    pub(crate) async fn keys_of(&self, mut query: Query) -> Result<Vec<ItemKey>> {
        let mut keys = Vec::new();
        loop {
            let page = self.backend().query(&query).await?;
            keys.extend(page.items.into_iter().map(|item| item.key));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(keys),
            }
        }
    }
}
