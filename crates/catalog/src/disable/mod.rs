//! Switches: an entity or a resource that may not be used for now, exceptions for one entity and one resource, and
//! cascade policies.
//!
//! All that is said of an entity or a resource is in one record, so that a call reads no more for the exceptions.

mod cascade;
mod record;

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::Fields;

use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, Result, name};

pub use cascade::Cascade;
pub(crate) use record::{Switched, Switches};

/// Whether an entity may use one resource, whatever else is said of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may not, though others may.
    Off,
    /// It may, though the resource is disabled for others.
    On,
}

impl Switches {
    /// What is said of an entity and one resource.
    pub(crate) fn access(&self, resource: &str) -> Option<Access> {
        self.access.get(resource).map(|may| if may { Access::On } else { Access::Off })
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
            self.turn(Switched::Entity(id.into()), Action::Disabled).await
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
            self.turn(Switched::Entity(id.into()), Action::Enabled).await
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
            self.turn(Switched::Resource(resource.into()), Action::Disabled).await
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
            self.turn(Switched::Resource(resource.into()), Action::Enabled).await
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
            Ok(self.switches_of(&Switched::Entity(id.into())).await?.is_off)
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
            let (switched, subject) = (Switched::Entity(id.into()), Subject::Entity(id));
            let may = access.map(|access| access == Access::On);
            let change = |it: &mut Switches| it.set_access(resource, may);
            self.switch(&switched, subject, Some(resource), action, Fields::new(), change).await
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
            Ok(self.switches_of(&Switched::Entity(id.into())).await?.access(resource))
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
            let switches = self.switches_of(&Switched::Entity(id.into())).await?;
            Ok(switches.access.all([Access::On, Access::Off]))
        })
    }

    async fn switches_of(&self, switched: &Switched) -> Result<Switches> {
        let item = self.get(switched.key(self.namespace_id())).await?;
        Ok(item.as_ref().map(Switches::of).unwrap_or_default())
    }

    /// Switches all of an entity or a resource off or on, and says whether it was the other way round.
    async fn turn(&self, switched: Switched, action: Action) -> Result<bool> {
        let (subject, resource) = match &switched {
            Switched::Entity(id) => (Subject::Entity(id), None),
            Switched::Resource(name) => (Subject::Resource(name), Some(name.as_str())),
        };
        let is_off = action == Action::Disabled;
        let change = |it: &mut Switches| it.is_off = is_off;
        self.switch(&switched, subject, resource, action, Fields::new(), change).await
    }

    /// Changes what is said of an entity or a resource, and says whether that was something else.
    async fn switch(
        &self,
        switched: &Switched,
        subject: Subject<'_>,
        resource: Option<&str>,
        action: Action,
        details: Fields,
        change: impl Fn(&mut Switches),
    ) -> Result<bool> {
        for _ in 0..ATTEMPTS_MAX {
            let there = self.get(switched.key(self.namespace_id())).await?;
            let before = there.as_ref().map(Switches::of).unwrap_or_default();
            let mut after = before.clone();
            change(&mut after);
            if before == after {
                return Ok(false);
            }
            let mut tx = self.transaction();
            tx.push(switched.write(self.namespace_id(), there.as_ref(), &after, self.now()));
            tx.audit(subject, action.clone(), resource, details.clone())?;
            if tx.commit().await? == Commit::Done {
                return Ok(true);
            }
        }
        Err(CatalogError::Contended(format!("the switches of {subject}")))
    }
}
