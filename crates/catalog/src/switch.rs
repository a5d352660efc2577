//! Switches: an entity or a resource that nobody may use for now.

use tollgate_store::Reply;
use tollgate_store::records::{Fields, Item, ItemKey, Test, Write};

use crate::audit::{Action, Subject};
use crate::transaction::Commit;
use crate::{Catalog, Result, keys, name};

impl Catalog {
    /// Refuses every call of an entity, and of those that cascade to it, until it is enabled; says whether it was
    /// enabled. One that was never created can be disabled, too.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// A name that is not valid, a namespace that is gone, or the store's.
    pub fn disable_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let off = Item::new(keys::entity_switch(self.namespace_id(), id)).with("entity_id", id);
            self.switch_off(Subject::Entity(id), None, off).await
        })
    }

    /// Admits the calls of an entity again, and says whether it was disabled.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// As [`disable_entity`](Catalog::disable_entity).
    pub fn enable_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let off = keys::entity_switch(self.namespace_id(), id);
            self.switch_on(Subject::Entity(id), None, off).await
        })
    }

    /// Refuses every call to a resource until it is enabled; says whether it was enabled.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// A name that is not valid, a namespace that is gone, or the store's.
    pub fn disable_resource<'a>(&'a self, resource: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::RESOURCE.check(resource)?;
            let off =
                Item::new(keys::resource_switch(self.namespace_id(), resource)).with("resource", resource);
            self.switch_off(Subject::Resource(resource), Some(resource), off).await
        })
    }

    /// Admits calls to a resource again, and says whether it was disabled.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// As [`disable_resource`](Catalog::disable_resource).
    pub fn enable_resource<'a>(&'a self, resource: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::RESOURCE.check(resource)?;
            let off = keys::resource_switch(self.namespace_id(), resource);
            self.switch_on(Subject::Resource(resource), Some(resource), off).await
        })
    }

    /// Whether an entity is disabled.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn is_entity_disabled<'a>(&'a self, id: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            Ok(self.get(keys::entity_switch(self.namespace_id(), id)).await?.is_some())
        })
    }

    async fn switch_off(&self, subject: Subject<'_>, resource: Option<&str>, off: Item) -> Result<bool> {
        let off = off.with("disabled", true).with("disabled_at", tollgate_store::usage::iso(self.now()));
        let mut tx = self.transaction();
        tx.push(Write::Put(off, vec![Test::Absent]));
        tx.audit(subject, Action::Disabled, resource, Fields::new())?;
        Ok(tx.commit().await? == Commit::Done)
    }

    async fn switch_on(&self, subject: Subject<'_>, resource: Option<&str>, off: ItemKey) -> Result<bool> {
        let mut tx = self.transaction();
        tx.push(Write::Delete(off, vec![Test::Exists]));
        tx.audit(subject, Action::Enabled, resource, Fields::new())?;
        Ok(tx.commit().await? == Commit::Done)
    }
}
