//! Cascade policies: whether calls are charged to parents, for a resource, an entity, or both.
//!
//! Whether an entity cascades is a property of the entity, and the same for all resources. A policy
//! overrides it for some of them: for every entity that uses a resource, or for one entity. The
//! first of these that is set decides: the entity for the resource, the entity for all resources,
//! the resource, the entity itself.

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::{Fields, Value};

use super::{SwitchSubject, Switches};
use crate::audit::Action;
use crate::{Catalog, CatalogError, Level, Result, name};

/// A cascade policy: it sets whether calls of entities with a parent are charged to the parent, too.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Cascade, Level, Registry};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// catalog.set_cascade(Level::Resource("budget"), Some(Cascade::Off)).wait()?;
/// assert_eq!(catalog.cascade(Level::Resource("budget")).wait()?, Some(Cascade::Off));
/// assert_eq!(catalog.cascade(Level::Resource("gpt-4")).wait()?, None, "the entity decides");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    /// They are charged to the parent, too.
    On,
    /// They are charged to the calling entity alone.
    Off,
}

impl Cascade {
    fn of(is_on: bool) -> Cascade {
        if is_on { Cascade::On } else { Cascade::Off }
    }

    fn is_on(self) -> bool {
        self == Cascade::On
    }
}

impl Catalog {
    /// Sets whether calls are charged to parents, for a resource, an entity, or an entity and a
    /// resource; `None` removes the policy, so that the next level decides. Returns true if that
    /// changed anything.
    ///
    /// The first of these that is set decides: the entity for the resource, the entity for all
    /// resources, the resource, and last [the entity itself](crate::NewEntity::cascades). An entity
    /// without a parent is always charged alone, and each ancestor follows its own policy.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_catalog::{Cascade, Level, NewEntity, Registry};
    /// use tollgate_core::{Limit, Limits};
    /// use tollgate_store::Memory;
    ///
    /// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
    /// catalog.set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 100)])?).wait()?;
    /// catalog.create_entity(NewEntity::new("org")).wait()?;
    /// catalog.create_entity(NewEntity::new("user").parent("org").cascades(true)).wait()?;
    ///
    /// // The limits of a model protect the organisation's account; the budget is the user's own.
    /// catalog.set_cascade(Level::Resource("budget"), Some(Cascade::Off)).wait()?;
    /// assert_eq!(catalog.chain("user", "gpt-4").wait()?.links.len(), 2);
    /// assert_eq!(catalog.chain("user", "budget").wait()?.links.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`Invalid`](CatalogError::Invalid) for the level of the system, an invalid name, a deleted
    /// namespace, or an error of the store.
    pub fn set_cascade<'a>(&'a self, level: Level<'a>, cascade: Option<Cascade>) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            let (target, resource) = target_of(level)?;
            let value = cascade.map(Cascade::is_on);
            let details = Fields::from([("cascade".into(), value.map_or(Value::Null, Value::from))]);
            let change = |it: &mut Switches| it.set_cascade(resource, value);
            self.change_switches(&target, level.subject(), resource, Action::CascadeSet, details, change)
                .await
        })
    }

    /// Returns the policy that [`set_cascade`](Catalog::set_cascade) stored on a level, if any.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// As [`set_cascade`](Catalog::set_cascade).
    pub fn cascade<'a>(&'a self, level: Level<'a>) -> Reply<'a, Result<Option<Cascade>>> {
        Reply::later(async move {
            let (target, resource) = target_of(level)?;
            let switches = self.switches_of(&target).await?;
            let value = match resource {
                Some(resource) => switches.cascades.get(resource),
                None => switches.cascade,
            };
            Ok(value.map(Cascade::of))
        })
    }

    /// Returns the policies of an entity for single resources, by resource.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn cascades_of_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<BTreeMap<String, Cascade>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let switches = self.switches_of(&SwitchSubject::Entity(id.into())).await?;
            Ok(switches.cascades.all([Cascade::On, Cascade::Off]))
        })
    }

    /// Returns the policies of resources, by resource. It reads the keys of all of them.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn cascades_of_resources(&self) -> Reply<'_, Result<BTreeMap<String, Cascade>>> {
        Reply::later(async move {
            let resources = self.switched_resources().await?.into_iter();
            Ok(resources.filter_map(|(name, it)| Some((name, Cascade::of(it.cascade?)))).collect())
        })
    }
}

/// Returns the subject whose record has the policy of a level, and the resource if the policy is
/// for a single one.
fn target_of(level: Level<'_>) -> Result<(SwitchSubject, Option<&str>)> {
    level.check()?;
    match level {
        Level::System => Err(CatalogError::Invalid {
            what: "the level of a cascade policy",
            value: "the system".into(),
            valid: "a resource, an entity, or an entity and a resource".into(),
        }),
        Level::Resource(resource) => Ok((SwitchSubject::Resource(resource.into()), None)),
        Level::Entity(entity) => Ok((SwitchSubject::Entity(entity.into()), None)),
        Level::EntityResource(entity, resource) => Ok((SwitchSubject::Entity(entity.into()), Some(resource))),
    }
}
