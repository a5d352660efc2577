//! Errors of the catalog.

use std::fmt;

use tollgate_core::{DemandError, LimitsError};
use tollgate_store::records::{ItemKey, RecordsError};
use tollgate_store::{CHAIN_MAX, StoreError};

use crate::{Finding, NameError};

/// The result of a catalog operation.
pub type Result<T> = std::result::Result<T, CatalogError>;

/// The reason that the catalog could not do what it was asked. Nothing was changed, unless it is
/// [`CatalogError::Store`].
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{CatalogError, Registry};
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// let error = registry.open("prod").wait().unwrap_err();
/// assert_eq!(error, CatalogError::NamespaceNotFound("prod".into()));
/// assert!(!error.is_unavailable());
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// A name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A setting or a value is not valid.
    #[error("{what} is {value}, but must be {valid}")]
    Invalid {
        /// The setting or value.
        what: &'static str,
        /// The value that was given.
        value: String,
        /// The valid values.
        valid: String,
    },
    /// No namespace has this name or id.
    #[error("there is no namespace {0:?}; register it first")]
    NamespaceNotFound(String),
    /// The namespace was deleted since it was opened.
    #[error("namespace {name:?} with id {id:?} was deleted; recover it by its id, or register a new one")]
    NamespaceGone {
        /// The name of the namespace.
        name: String,
        /// The id of the namespace.
        id: String,
    },
    /// The status of the namespace does not allow the operation.
    #[error("namespace {id:?} is {status}, but must be {valid}")]
    NamespaceStatus {
        /// The id of the namespace.
        id: String,
        /// The status of the namespace.
        status: crate::NamespaceStatus,
        /// The required status.
        valid: &'static str,
    },
    /// Another namespace has the name by now.
    #[error("the name {name:?} was given to another namespace, {id:?}; delete that one first")]
    NamespaceTaken {
        /// The name.
        name: String,
        /// The id of the namespace that has the name.
        id: String,
    },
    /// An entity of this id was created before.
    #[error("entity {0:?} exists already")]
    EntityExists(String),
    /// No entity of this id was created, and no record of it exists.
    #[error("there is no entity {0:?}; create it first")]
    EntityNotFound(String),
    /// The parent was never created, or is being deleted.
    #[error(
        "entity {entity:?} cannot have the parent {parent:?}, which does not exist; create that one first"
    )]
    ParentNotFound {
        /// The id of the child.
        entity: String,
        /// The id of the intended parent.
        parent: String,
    },
    /// An entity with children cannot be deleted.
    #[error("entity {entity:?} has {}", of_children(*children))]
    HasChildren {
        /// The id of the entity.
        entity: String,
        /// The number of children.
        children: u64,
    },
    /// The entity would be its own ancestor.
    #[error("entity {entity:?} cannot have the parent {parent:?}, which is below it")]
    Cycle {
        /// The id of the entity.
        entity: String,
        /// The id of the intended parent.
        parent: String,
    },
    /// The chain from the entity to its root would be too long.
    #[error("more than {CHAIN_MAX} entities would lie between {0:?} and the top; use fewer levels")]
    ChainTooLong(String),
    /// Limits that cannot be stored.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// A set of limits without a limit.
    #[error("no limits are given for {0}; give at least one, or delete the ones that are stored")]
    EmptyLimits(String),
    /// No level has limits for the entity and the resource.
    #[error("there are no limits for entity {entity:?} and resource {resource:?}; set some on any level")]
    NoLimits {
        /// The id of the entity.
        entity: String,
        /// The resource.
        resource: String,
    },
    /// The entity or the resource is disabled.
    #[error("{what} is disabled; enable it first")]
    Disabled {
        /// The disabled entity or resource.
        what: Switchable,
    },
    /// The credit does not fit the limits.
    #[error(transparent)]
    Credit(#[from] DemandError),
    /// A resource limit cannot be topped up: it is held, not consumed.
    #[error("limit {0:?} is a resource, which cannot be topped up: its holders give it back")]
    CreditOfResource(String),
    /// A record has a value that this program does not understand.
    #[error("the record {partition:?} {sort:?} cannot be read: {why}")]
    BadRecord {
        /// The partition of the record.
        partition: String,
        /// The sort key of the record.
        sort: String,
        /// The problem of the record.
        why: String,
    },
    /// Other callers kept changing the same records.
    #[error("others kept changing {0} at the same time; try again")]
    Contended(String),
    /// Another caller changed a managed set since this one read it.
    #[error("another process changed managed set {0:?} at the same time; look at it again")]
    SetChanged(String),
    /// A later version of this program wrote the records.
    #[error("the records have schema {found}, but this program knows only up to {known}; use a newer one")]
    TooNew {
        /// The schema of the records.
        found: String,
        /// The schema of this program.
        known: String,
    },
    /// An earlier version of this program wrote the records.
    #[error("the records have schema {found}, but this program needs {known}; migrate them first")]
    TooOld {
        /// The schema of the records.
        found: String,
        /// The schema of this program.
        known: String,
    },
    /// A migration would lose settings that this program cannot represent.
    #[error("a migration would lose {}", of_findings(.0))]
    WouldLose(Vec<Finding>),
    /// The records require a later version of this program.
    #[error(
        "the records want version {wanted} of this program or later, but this is {this}; use a newer one"
    )]
    ClientTooOld {
        /// The earliest version that may be used.
        wanted: String,
        /// The version of this program.
        this: String,
    },
    /// The text is not a token.
    #[error("this is not a token: {0}")]
    NotAToken(&'static str),
    /// No valid secret of the namespace has sealed the token.
    #[error(
        "namespace {0:?} has not sealed this token: it was changed, is of another namespace or store, or is older than the last two secrets"
    )]
    TokenRefused(String),
    /// The namespace has no secret to seal tokens with, and this principal may not create one.
    #[error(
        "namespace {namespace:?} has no secret to seal tokens with, and none can be made here ({why}); run `tollgate upgrade` once with permission to write every record"
    )]
    NoSecret {
        /// The name of the namespace.
        namespace: String,
        /// The error of the store.
        why: String,
    },
    /// The operating system provides no random bytes.
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(String),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A disabled entity or resource.
///
/// ```
/// use tollgate_catalog::Switchable;
///
/// let disabled = Switchable::EntityResource("user-1".into(), "gpt-4".into());
/// assert_eq!(disabled.to_string(), r#"resource "gpt-4" for entity "user-1""#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Switchable {
    /// An entity.
    Entity(String),
    /// A resource.
    Resource(String),
    /// A resource, for one entity.
    EntityResource(String, String),
}

impl CatalogError {
    /// Returns true if the store did not answer, so that the outcome is unknown. A store that
    /// refuses has answered.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, CatalogError::Store(StoreError::Unavailable(..)))
    }

    pub(crate) fn bad_record(key: &ItemKey, why: impl Into<String>) -> CatalogError {
        let (partition, sort) = (key.partition.clone(), key.sort.clone());
        CatalogError::BadRecord { partition, sort, why: why.into() }
    }
}

/// Converts a failed test that the caller did not handle: another change was faster.
impl From<RecordsError> for CatalogError {
    fn from(error: RecordsError) -> CatalogError {
        match error {
            RecordsError::Store(error) => CatalogError::Store(error),
            RecordsError::Failed(write) => CatalogError::Contended(format!("the record of write {write}")),
            other => CatalogError::Contended(other.to_string()),
        }
    }
}

fn of_findings(lost: &[Finding]) -> String {
    match lost {
        [] => "nothing".into(),
        [Finding { what, problem, .. }] => format!("this: {what}: {problem}"),
        [Finding { what, problem, .. }, ..] => {
            format!("{} things, the first of which is: {what}: {problem}", lost.len())
        }
    }
}

fn of_children(count: u64) -> String {
    match count {
        1 => "a child; delete or move it first".into(),
        count => format!("{count} children; delete or move them first"),
    }
}

impl fmt::Display for Switchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Switchable::Entity(id) => write!(f, "entity {id:?}"),
            Switchable::Resource(name) => write!(f, "resource {name:?}"),
            Switchable::EntityResource(id, name) => write!(f, "resource {name:?} for entity {id:?}"),
        }
    }
}
