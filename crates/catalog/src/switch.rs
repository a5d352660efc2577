//! Switches: an entity or a resource that may not be used for now, and exceptions for one entity and one resource.
//!
//! All that is said of an entity is in one record, so that a call reads no more for the exceptions.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_store::Reply;
use tollgate_store::records::{Fields, Item, ItemKey, Test, Value, Write};

use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, Result, keys, name};

const OFF: &str = "off_resources";
const ON: &str = "on_resources";
const REVISION: &str = "revision";

/// Whether an entity may use one resource, whatever else is said of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may not, though others may.
    Off,
    /// It may, though the resource is disabled for others.
    On,
}

/// What is said of an entity, or of a resource as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// Whether all of it is off.
    pub(crate) is_off: bool,
    off: BTreeSet<String>,
    on: BTreeSet<String>,
}

impl Switches {
    /// What a record says.
    pub(crate) fn of(item: &Item) -> Switches {
        let resources = |field: &str| match item.fields.get(field) {
            Some(Value::Set(resources)) => resources.clone(),
            _ => BTreeSet::new(),
        };
        Switches { is_off: item.is_set("disabled"), off: resources(OFF), on: resources(ON) }
    }

    /// What is said of one resource.
    pub(crate) fn access(&self, resource: &str) -> Option<Access> {
        match (self.off.contains(resource), self.on.contains(resource)) {
            (true, _) => Some(Access::Off),
            (false, true) => Some(Access::On),
            (false, false) => None,
        }
    }

    fn set(&mut self, resource: &str, access: Option<Access>) {
        self.off.remove(resource);
        self.on.remove(resource);
        match access {
            Some(Access::Off) => self.off.insert(resource.into()),
            Some(Access::On) => self.on.insert(resource.into()),
            None => false,
        };
    }

    fn is_empty(&self) -> bool {
        *self == Switches::default()
    }
}

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
            self.switch_entity(id, None, Action::Disabled, |it| it.is_off = true).await
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
            self.switch_entity(id, None, Action::Enabled, |it| it.is_off = false).await
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
            Ok(self.switches_of(id).await?.is_off)
        })
    }

    /// Says whether an entity may use one resource: [`Access::Off`] refuses its calls though others may use it,
    /// [`Access::On`] admits them though the resource is disabled, and `None` takes back what was said. Says whether that
    /// changed anything. An entity that is disabled itself may use nothing.
    ///
    /// It is the entity that calls which counts: those it cascades to are charged as ever.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// As [`disable_entity`](Catalog::disable_entity).
    pub fn set_access<'a>(
        &'a self,
        id: &'a str,
        resource: &'a str,
        access: Option<Access>,
    ) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            name::RESOURCE.check(resource)?;
            let action = if access == Some(Access::Off) { Action::Disabled } else { Action::Enabled };
            self.switch_entity(id, Some(resource), action, |it| it.set(resource, access)).await
        })
    }

    /// What was said of an entity and one resource, if anything was.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn access<'a>(&'a self, id: &'a str, resource: &'a str) -> Reply<'a, Result<Option<Access>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            name::RESOURCE.check(resource)?;
            Ok(self.switches_of(id).await?.access(resource))
        })
    }

    /// All that was said of an entity and single resources, by resource.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn accesses<'a>(&'a self, id: &'a str) -> Reply<'a, Result<BTreeMap<String, Access>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let Switches { off, on, .. } = self.switches_of(id).await?;
            let on = on.into_iter().map(|resource| (resource, Access::On));
            Ok(on.chain(off.into_iter().map(|resource| (resource, Access::Off))).collect())
        })
    }

    async fn switches_of(&self, id: &str) -> Result<Switches> {
        let item = self.get(keys::entity_switch(self.namespace_id(), id)).await?;
        Ok(item.as_ref().map(Switches::of).unwrap_or_default())
    }

    /// Changes what is said of an entity, and says whether that was something else.
    async fn switch_entity(
        &self,
        id: &str,
        resource: Option<&str>,
        action: Action,
        change: impl Fn(&mut Switches),
    ) -> Result<bool> {
        let key = keys::entity_switch(self.namespace_id(), id);
        for _ in 0..ATTEMPTS_MAX {
            let there = self.get(key.clone()).await?;
            let before = there.as_ref().map(Switches::of).unwrap_or_default();
            let mut after = before.clone();
            change(&mut after);
            if before == after {
                return Ok(false);
            }
            let mut tx = self.transaction();
            tx.push(self.switch_write(id, there.as_ref(), &after));
            tx.audit(Subject::Entity(id), action.clone(), resource, Fields::new())?;
            if tx.commit().await? == Commit::Done {
                return Ok(true);
            }
        }
        Err(CatalogError::Contended(format!("entity {id:?}")))
    }

    /// The write that puts what is said of an entity in place of what was, if that is still the same.
    fn switch_write(&self, id: &str, there: Option<&Item>, after: &Switches) -> Write {
        let key = keys::entity_switch(self.namespace_id(), id);
        let revision = there.and_then(|item| item.int(REVISION)).unwrap_or(0);
        let tests = match there {
            None => vec![Test::Absent],
            // A record that has none was written before there were any.
            Some(_) if revision == 0 => vec![Test::Exists, Test::AtMost(REVISION.into(), 0)],
            Some(_) => vec![Test::Is(REVISION.into(), revision.into())],
        };
        if after.is_empty() {
            return Write::Delete(key, tests);
        }
        // By the time, so that a record that is deleted and made anew has another one.
        let now = i64::try_from(self.now().as_micros()).unwrap_or(i64::MAX);
        let mut item =
            Item::new(key).with("entity_id", id).with(REVISION, now.max(revision.saturating_add(1)));
        if after.is_off {
            let since = there.and_then(|item| item.text("disabled_at")).map(str::to_owned);
            let since = since.unwrap_or_else(|| tollgate_store::usage::iso(self.now()));
            item = item.with("disabled", true).with("disabled_at", since);
        }
        for (field, resources) in [(OFF, &after.off), (ON, &after.on)] {
            if !resources.is_empty() {
                item.fields.insert(field.into(), Value::Set(resources.clone()));
            }
        }
        Write::Put(item, tests)
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
