//! Switches: disabled entities and resources, exceptions for one entity and one resource, and
//! cascade policies.
//!
//! All switches of an entity or a resource are in one record, so that exceptions cost a call no
//! further read.

mod cascade;
mod record;

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::Fields;

use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, Result, name};

pub use cascade::Cascade;
pub(crate) use record::{SwitchSubject, Switches};

/// An exception: whether an entity may use one resource, whatever the resource's own switch.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Access, Level, Registry};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// catalog.set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 100)])?).wait()?;
/// catalog.disable_resource("gpt-4").wait()?;
/// catalog.set_access("tester", "gpt-4", Some(Access::On)).wait()?;
/// assert!(catalog.chain("user-1", "gpt-4").wait().is_err());
/// assert!(catalog.chain("tester", "gpt-4").wait().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may not, though others may.
    Off,
    /// It may, though the resource is disabled for others.
    On,
}

impl Switches {
    /// Returns the exception for one resource.
    pub(crate) fn access(&self, resource: &str) -> Option<Access> {
        self.access.get(resource).map(|may| if may { Access::On } else { Access::Off })
    }
}

impl Catalog {
    /// Refuses every call of an entity, and of those that cascade to it, until it is enabled.
    /// Returns true if it was enabled. An entity that was never created can be disabled, too.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, a deleted namespace, or an error of the store.
    pub fn disable_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            self.set_disabled(SwitchSubject::Entity(id.into()), Action::Disabled).await
        })
    }

    /// Admits the calls of an entity again. Returns true if it was disabled.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// As [`disable_entity`](Catalog::disable_entity).
    pub fn enable_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            self.set_disabled(SwitchSubject::Entity(id.into()), Action::Enabled).await
        })
    }

    /// Refuses every call to a resource until it is enabled. Returns true if it was enabled.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, a deleted namespace, or an error of the store.
    pub fn disable_resource<'a>(&'a self, resource: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::RESOURCE.check(resource)?;
            self.set_disabled(SwitchSubject::Resource(resource.into()), Action::Disabled).await
        })
    }

    /// Admits calls to a resource again. Returns true if it was disabled.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// As [`disable_resource`](Catalog::disable_resource).
    pub fn enable_resource<'a>(&'a self, resource: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::RESOURCE.check(resource)?;
            self.set_disabled(SwitchSubject::Resource(resource.into()), Action::Enabled).await
        })
    }

    /// Returns true if an entity is disabled.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn is_entity_disabled<'a>(&'a self, id: &'a str) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            Ok(self.switches_of(&SwitchSubject::Entity(id.into())).await?.is_off)
        })
    }

    /// Sets whether an entity may use one resource: [`Access::Off`] refuses its calls though others
    /// may use it, [`Access::On`] admits them though the resource is disabled, and `None` removes
    /// the exception. Returns true if that changed anything. An entity that is disabled itself may
    /// use nothing.
    ///
    /// Only the calling entity's exception counts: the ancestors it cascades to are charged as
    /// usual.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
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
            let (target, subject) = (SwitchSubject::Entity(id.into()), Subject::Entity(id));
            let may = access.map(|access| access == Access::On);
            let change = |it: &mut Switches| it.set_access(resource, may);
            self.change_switches(&target, subject, Some(resource), action, Fields::new(), change).await
        })
    }

    /// Returns the exception for an entity and one resource, if there is one.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn access<'a>(&'a self, id: &'a str, resource: &'a str) -> Reply<'a, Result<Option<Access>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            name::RESOURCE.check(resource)?;
            Ok(self.switches_of(&SwitchSubject::Entity(id.into())).await?.access(resource))
        })
    }

    /// Returns the exceptions of an entity, by resource.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn accesses<'a>(&'a self, id: &'a str) -> Reply<'a, Result<BTreeMap<String, Access>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let switches = self.switches_of(&SwitchSubject::Entity(id.into())).await?;
            Ok(switches.access.all([Access::On, Access::Off]))
        })
    }

    async fn switches_of(&self, target: &SwitchSubject) -> Result<Switches> {
        let item = self.get(target.key(self.namespace_id())).await?;
        Ok(item.as_ref().map(Switches::of).unwrap_or_default())
    }

    /// Disables or enables an entity or a resource. Returns true if that changed anything.
    async fn set_disabled(&self, target: SwitchSubject, action: Action) -> Result<bool> {
        let (subject, resource) = match &target {
            SwitchSubject::Entity(id) => (Subject::Entity(id), None),
            SwitchSubject::Resource(name) => (Subject::Resource(name), Some(name.as_str())),
        };
        let is_off = action == Action::Disabled;
        let change = |it: &mut Switches| it.is_off = is_off;
        self.change_switches(&target, subject, resource, action, Fields::new(), change).await
    }

    /// Changes the switches of an entity or a resource. Returns true if that changed anything.
    async fn change_switches(
        &self,
        target: &SwitchSubject,
        subject: Subject<'_>,
        resource: Option<&str>,
        action: Action,
        details: Fields,
        change: impl Fn(&mut Switches),
    ) -> Result<bool> {
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.get(target.key(self.namespace_id())).await?;
            let before = stored.as_ref().map(Switches::of).unwrap_or_default();
            let mut after = before.clone();
            change(&mut after);
            if before == after {
                return Ok(false);
            }
            let mut tx = self.transaction();
            tx.push(target.write(self.namespace_id(), stored.as_ref(), &after, self.now()));
            tx.audit(subject, action.clone(), resource, details.clone())?;
            if tx.commit().await? == Commit::Done {
                return Ok(true);
            }
        }
        Err(CatalogError::Contended(format!("the switches of {subject}")))
    }
}
