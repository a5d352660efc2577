//! Stored limits: their levels, and the source of the limits in force.

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
pub(crate) use codec::{is_limit_field, read_config, unreadable_limits};
pub use managed::ManagedSet;

/// The level that limits are stored on. The first level that has any applies as a whole: those of
/// an entity for a resource, those of an entity for all resources, those of a resource, those of
/// the system.
///
/// ```
/// use tollgate_catalog::Level;
///
/// assert_eq!(Level::EntityResource("user-1", "gpt-4").to_string(), r#"entity "user-1", resource "gpt-4""#);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level<'a> {
    /// All entities and resources.
    System,
    /// A resource.
    Resource(&'a str),
    /// An entity, for all resources.
    Entity(&'a str),
    /// An entity and a resource.
    EntityResource(&'a str, &'a str),
}

/// The source of the limits in force.
///
/// ```
/// use tollgate_catalog::LimitsSource;
///
/// assert_eq!(LimitsSource::EntityDefault.to_string(), "entity_default");
/// ```
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
    /// The call itself, which overrides stored limits.
    Call,
}

/// The policy for a store that does not answer.
///
/// ```
/// use tollgate_catalog::OnUnavailable;
///
/// assert_eq!(OnUnavailable::from_name("local"), Some(OnUnavailable::Local));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnUnavailable {
    /// Refuses calls.
    Block,
    /// Admits calls.
    Allow,
    /// Admits calls by a bucket in this process, at a share of the limit.
    Local,
}

/// The limits that are stored on one level.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Level, Registry};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// catalog.set_limits(Level::Resource("gpt-4"), &limits).wait()?;
/// let stored = catalog.limits(Level::Resource("gpt-4")).wait()?.expect("they are stored");
/// assert!(stored.has(&limits));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredLimits {
    /// The limits, in the order of their names. Only the system's may be empty.
    pub limits: Limits,
    /// When the level was last set, in microseconds. In records of zae-limiter, how often.
    pub config_version: u64,
    /// The policy for a store that does not answer; only the system has one.
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

    /// Returns the entity and the resource name of the record, if this is a level of an entity.
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
    /// Returns the name of the policy in records.
    pub fn name(self) -> &'static str {
        match self {
            OnUnavailable::Block => "block",
            OnUnavailable::Allow => "allow",
            OnUnavailable::Local => "local",
        }
    }

    /// Returns the policy of a name.
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

/// Writes the level, such as `entity "user-1", resource "gpt-4"`.
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
    /// Returns true if the level has these limits and no others, in any order.
    pub fn has(&self, limits: &Limits) -> bool {
        self.limits.len() == limits.len() && limits.iter().all(|limit| self.limits.contains(limit))
    }

    /// Returns true if there are limits: a level without any does not decide about admission.
    pub(crate) fn have_limits(&self) -> bool {
        !self.limits.is_empty()
    }
}

fn refuse_empty(level: Level<'_>) -> CatalogError {
    CatalogError::EmptyLimits(level.to_string())
}
