//! Cascade policies: whether calls are charged to parents, for a resource, an entity, or both.
//!
//! Whether an entity cascades is part of the entity, and the same for all resources. A policy says otherwise for some of
//! them: for every entity that uses a resource, or for one entity. The first of these that says something decides: the
//! entity for the resource, the entity for all resources, the resource, the entity itself.

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::{Fields, Value};

use super::{Switched, Switches};
use crate::audit::Action;
use crate::{Catalog, CatalogError, Level, Result, name};

/// Whether calls of entities that have a parent are charged to it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    /// They are.
    On,
    /// They are charged to the entity that calls alone.
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
    /// Says whether calls are charged to parents, for a resource, an entity, or an entity and a resource; `None` takes back
    /// what was said, so that the next level decides. Says whether that changed anything.
    ///
    /// The first that says something decides: the entity for the resource, the entity for all resources, the resource, and
    /// last [the entity itself](crate::NewEntity::cascades). An entity without a parent is charged alone, whatever is said,
    /// and each entity on the way up goes by what is said of it.
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
    /// Cancelled before it is done, all of it is applied or nothing.
    ///
    /// # Errors
    ///
    /// [`Invalid`](CatalogError::Invalid) for the level of the system, a name that is not valid, a namespace that is gone, or
    /// the store's.
    pub fn set_cascade<'a>(&'a self, level: Level<'a>, cascade: Option<Cascade>) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            let (switched, resource) = place(level)?;
            let said = cascade.map(Cascade::is_on);
            let details = Fields::from([("cascade".into(), said.map_or(Value::Null, Value::from))]);
            let change = |it: &mut Switches| it.set_cascade(resource, said);
            self.switch(&switched, level.subject(), resource, Action::CascadeSet, details, change).await
        })
    }

    /// What was said with [`set_cascade`](Catalog::set_cascade) on a level, if anything was.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// As [`set_cascade`](Catalog::set_cascade).
    pub fn cascade<'a>(&'a self, level: Level<'a>) -> Reply<'a, Result<Option<Cascade>>> {
        Reply::later(async move {
            let (switched, resource) = place(level)?;
            let switches = self.switches_of(&switched).await?;
            let said = match resource {
                Some(resource) => switches.cascades.get(resource),
                None => switches.cascade,
            };
            Ok(said.map(Cascade::of))
        })
    }

    /// All that was said with [`set_cascade`](Catalog::set_cascade) of an entity and single resources, by resource.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn cascades_of_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<BTreeMap<String, Cascade>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let switches = self.switches_of(&Switched::Entity(id.into())).await?;
            Ok(switches.cascades.all([Cascade::On, Cascade::Off]))
        })
    }

    /// What was said with [`set_cascade`](Catalog::set_cascade) of resources, by resource. Goes through all of them.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn cascades_of_resources(&self) -> Reply<'_, Result<BTreeMap<String, Cascade>>> {
        Reply::later(async move {
            let switched = self.switched_resources().await?.into_iter();
            Ok(switched.filter_map(|(name, it)| Some((name, Cascade::of(it.cascade?)))).collect())
        })
    }
}

/// Where it is said what holds on a level, and of which resource if it is one of several.
fn place(level: Level<'_>) -> Result<(Switched, Option<&str>)> {
    level.check()?;
    match level {
        Level::System => Err(CatalogError::Invalid {
            what: "the level of a cascade policy",
            value: "the system".into(),
            valid: "a resource, an entity, or an entity and a resource".into(),
        }),
        Level::Resource(resource) => Ok((Switched::Resource(resource.into()), None)),
        Level::Entity(entity) => Ok((Switched::Entity(entity.into()), None)),
        Level::EntityResource(entity, resource) => Ok((Switched::Entity(entity.into()), Some(resource))),
    }
}
