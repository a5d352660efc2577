//! Stored limits: on which level they are, and where the ones in force come from.

mod apply;
mod change;
mod codec;
mod list;
mod managed;

use std::fmt;

use tollgate_core::Limits;
use tollgate_store::records::ItemKey;

use crate::audit::Subject;
use crate::name::{self, DEFAULT_RESOURCE, NameError};
use crate::{CatalogError, keys};

pub use apply::{LEVELS_MAX, LevelChange, Target};
pub(crate) use codec::{is_limit_field, read_config};
pub use managed::ManagedSet;

/// Where limits are stored. The first level that has some wins whole: those of an entity for a resource, those of an
/// entity for all resources, those of a resource, those of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level<'a> {
    /// For everything.
    System,
    /// For a resource.
    Resource(&'a str),
    /// For an entity, whatever the resource.
    Entity(&'a str),
    /// For an entity and a resource.
    EntityResource(&'a str, &'a str),
}

/// The level that the limits in force come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitsSource {
    /// The entity, for this resource.
    Entity,
    /// The entity, for all resources.
    EntityDefault,
    /// The resource.
    Resource,
    /// The system.
    System,
    /// The call itself, whatever is stored.
    Call,
}

/// What to do when the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnUnavailable {
    /// Refuse.
    Block,
    /// Admit.
    Allow,
    /// Admit by a bucket in this process, at a share of the limit.
    Local,
}

/// Limits as they are stored on one level.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredLimits {
    /// The limits, in the order of their names. Only the system's may be none.
    pub limits: Limits,
    /// When the level was last set, in microseconds. In records of the original, how often.
    pub config_version: u64,
    /// What to do when the store does not answer; only the system says so.
    pub on_unavailable: Option<OnUnavailable>,
}

impl<'a> Level<'a> {
    pub(crate) fn check(self) -> Result<(), NameError> {
        match self {
            Level::System => Ok(()),
            Level::Resource(resource) => name::RESOURCE.check(resource),
            Level::Entity(entity) => name::ENTITY.check(entity),
            Level::EntityResource(entity, resource) => {
                name::ENTITY.check(entity).and_then(|()| name::RESOURCE.check(resource))
            }
        }
    }

    pub(crate) fn key(self, ns: &str) -> ItemKey {
        match self {
            Level::System => keys::system_config(ns),
            Level::Resource(resource) => keys::resource_config(ns, resource),
            Level::Entity(entity) => keys::entity_config(ns, entity, DEFAULT_RESOURCE),
            Level::EntityResource(entity, resource) => keys::entity_config(ns, entity, resource),
        }
    }

    /// The entity and the name of the resource that its limits are stored under, if it is the level of an entity.
    pub(crate) fn entity(self) -> Option<(&'a str, &'a str)> {
        match self {
            Level::System | Level::Resource(_) => None,
            Level::Entity(entity) => Some((entity, DEFAULT_RESOURCE)),
            Level::EntityResource(entity, resource) => Some((entity, resource)),
        }
    }

    pub(crate) fn resource(self) -> Option<&'a str> {
        match self {
            Level::System => None,
            Level::Resource(resource) => Some(resource),
            Level::Entity(_) | Level::EntityResource(..) => self.entity().map(|(_, resource)| resource),
        }
    }

    pub(crate) fn subject(self) -> Subject<'a> {
        match self {
            Level::System => Subject::System,
            Level::Resource(resource) => Subject::Resource(resource),
            Level::Entity(entity) | Level::EntityResource(entity, _) => Subject::Entity(entity),
        }
    }
}

impl OnUnavailable {
    /// The name it has in records.
    pub fn name(self) -> &'static str {
        match self {
            OnUnavailable::Block => "block",
            OnUnavailable::Allow => "allow",
            OnUnavailable::Local => "local",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<OnUnavailable> {
        [OnUnavailable::Block, OnUnavailable::Allow, OnUnavailable::Local]
            .into_iter()
            .find(|policy| policy.name() == name)
    }
}

impl fmt::Display for OnUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for LimitsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LimitsSource::Entity => "entity",
            LimitsSource::EntityDefault => "entity_default",
            LimitsSource::Resource => "resource",
            LimitsSource::System => "system",
            LimitsSource::Call => "call",
        })
    }
}

/// `entity "user-1", resource "gpt-4"` and the like.
impl fmt::Display for Level<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::System => f.write_str("the system"),
            Level::Resource(resource) => write!(f, "resource {resource:?}"),
            Level::Entity(entity) => write!(f, "entity {entity:?}"),
            Level::EntityResource(entity, resource) => write!(f, "entity {entity:?}, resource {resource:?}"),
        }
    }
}

impl StoredLimits {
    /// Whether it has these limits and no others, in whatever order.
    pub fn has(&self, limits: &Limits) -> bool {
        self.limits.len() == limits.len() && limits.iter().all(|limit| self.limits.contains(limit))
    }

    /// Whether there are limits: a level that has none says nothing about who is admitted.
    pub(crate) fn have_limits(&self) -> bool {
        !self.limits.is_empty()
    }
}

fn refuse_empty(level: Level<'_>) -> CatalogError {
    CatalogError::EmptyLimits(level.to_string())
}
