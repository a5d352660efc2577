//! Deleting entities, with all that is stored of them.
//!
//! That may be more than fits one transaction. So an entity is marked first, from when on it gets no children; then goes
//! what is stored of it, and the entity itself last. Whoever is interrupted deletes it again, and goes on from there.

use tollgate_store::records::{Change, Fields, Query, Test, WRITES_MAX, Write};
use tollgate_store::{FORGET_MAX, Reply, Scope};

use super::family::has_parent;
use super::{DELETING, Entity};
use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, DEFAULT_RESOURCE, Level, Result, keys, name};

/// How much is deleted in one transaction beside the check of the namespace.
const BATCH: usize = WRITES_MAX - 1;

impl Catalog {
    /// Deletes an entity: its limits, its buckets, its usage and itself. Its audit events stay.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, part of it may be gone; delete it again to go on.
    ///
    /// # Errors
    ///
    /// [`EntityNotFound`](CatalogError::EntityNotFound) if nothing at all is stored of it,
    /// [`HasChildren`](CatalogError::HasChildren), a name that is not valid, a namespace that is gone, or the store's.
    pub fn delete_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<()>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            if self.mark_deleting(id).await? {
                self.delete_stored(id).await?;
                self.delete_marked(id).await
            } else if self.has_stored(id).await? {
                let mut tx = self.transaction();
                tx.push(Write::Delete(keys::entity_switch(self.namespace_id(), id), Vec::new()));
                tx.audit(Subject::Entity(id), Action::EntityDeleted, None, Fields::new())?;
                tx.commit().await?.expect_done(&id)?;
                self.delete_stored(id).await
            } else {
                Err(CatalogError::EntityNotFound(id.into()))
            }
        })
    }

    /// Marks an entity and says whether there is one.
    async fn mark_deleting(&self, id: &str) -> Result<bool> {
        let key = keys::entity(self.namespace_id(), id);
        for _ in 0..ATTEMPTS_MAX {
            let Some(item) = self.get(key.clone()).await? else { return Ok(false) };
            let children = Entity::of(id, &item).children;
            if children > 0 {
                return Err(CatalogError::HasChildren { entity: id.into(), children });
            }
            let mut tx = self.transaction();
            let tests = vec![Test::Exists, Test::AtMost("children".into(), 0)];
            tx.push(Write::Change(key.clone(), vec![Change::Set(DELETING.into(), 1.into())], tests));
            if let Commit::Done = tx.commit().await? {
                return Ok(true);
            }
        }
        Err(CatalogError::Contended(format!("entity {id:?}")))
    }

    async fn has_stored(&self, id: &str) -> Result<bool> {
        let partition = keys::entity_partition(self.namespace_id(), id);
        let records = self.backend().query(&Query { limit: 1, ..Query::all(partition) }).await?;
        if !records.items.is_empty() {
            return Ok(true);
        }
        let scope = Scope::Entity(id);
        Ok(!self.backend().buckets(self.namespace_id(), scope, None, 1).await?.items.is_empty())
    }

    async fn delete_stored(&self, id: &str) -> Result<()> {
        while self.backend().forget(self.namespace_id(), Scope::Entity(id)).await? >= FORGET_MAX {}
        self.delete_configs(id).await?;
        self.delete_usage(id).await
    }

    async fn delete_configs(&self, id: &str) -> Result<()> {
        let partition = keys::entity_partition(self.namespace_id(), id);
        let mut query = Query::prefix(partition, keys::CONFIG_PREFIX);
        loop {
            let page = self.backend().query(&query).await?;
            for item in page.items {
                let resource = item.key.sort.strip_prefix(keys::CONFIG_PREFIX).unwrap_or_default();
                let level = match resource {
                    DEFAULT_RESOURCE => Level::Entity(id),
                    resource => Level::EntityResource(id, resource),
                };
                self.delete_limits(level).await?;
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn delete_usage(&self, id: &str) -> Result<()> {
        let partition = keys::entity_partition(self.namespace_id(), id);
        let mut query = Query::prefix(partition, keys::USAGE_PREFIX);
        loop {
            let page = self.backend().query(&query).await?;
            for batch in page.items.chunks(BATCH) {
                let mut tx = self.transaction();
                for item in batch {
                    tx.push(Write::Delete(item.key.clone(), Vec::new()));
                }
                tx.commit().await?.expect_done(&"usage")?;
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn delete_marked(&self, id: &str) -> Result<()> {
        let ns = self.namespace_id();
        for _ in 0..ATTEMPTS_MAX {
            // Gone means that somebody else was deleting it, too.
            let Some(item) = self.get(keys::entity(ns, id)).await? else { return Ok(()) };
            let parent = Entity::of(id, &item).parent;
            let mut tx = self.transaction();
            let tests = vec![Test::AtMost("children".into(), 0), has_parent(parent.as_deref()), Test::Exists];
            tx.push(Write::Delete(keys::entity(ns, id), tests));
            tx.push(Write::Delete(keys::entity_switch(ns, id), Vec::new()));
            if let Some(parent) = &parent
                && self.exists(parent).await?
            {
                let fewer = vec![Change::Add("children".into(), -1)];
                tx.push(Write::Change(keys::entity(ns, parent), fewer, vec![Test::Exists]));
            }
            tx.audit(Subject::Entity(id), Action::EntityDeleted, None, Fields::new())?;
            if let Commit::Done = tx.commit().await? {
                return Ok(());
            }
        }
        Err(CatalogError::Contended(format!("entity {id:?}")))
    }
}
