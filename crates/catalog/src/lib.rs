//! What a limiter knows beside its buckets: namespaces, entities, stored limits, switches, audit and usage.
//!
//! Written once over any [`Backend`](tollgate_store::Backend). A [`Registry`] has the namespaces of a store; a [`Catalog`]
//! has everything of one of them, and resolves what a call takes from: the [`EntityChain`] of an entity and those it cascades
//! to, with the limits in force for each.
//!
//! Every change is one transaction with its audit event, and with a check that the namespace is there. No change needs
//! a lock, and none is lost: a change that is overtaken reads again and retries.

mod audit;
mod base64url;
mod bucket;
mod cache;
mod capacity;
mod catalog;
mod chain;
mod counts;
mod disable;
mod entity;
mod error;
mod keys;
mod limits;
mod login;
mod name;
mod page;
mod random;
mod registry;
mod shared_set;
mod ticket;
mod token;
mod transaction;
mod ulid;
mod usage;
mod waiters;

pub use audit::{Action, AuditEvent, Subject};
pub use bucket::KEY_KEPT;
pub use cache::CacheStats;
pub use capacity::{EntityCapacity, ResourceCapacity};
pub use catalog::Catalog;
pub use chain::{ChainLink, EntityChain};
pub use counts::Counts;
pub use disable::{Access, Cascade};
pub use entity::{Entity, METADATA_MAX, NewEntity, TEXT_MAX};
pub use error::{CatalogError, Result, Switchable};
pub use limits::{
    LEVELS_MAX, Level, LevelChange, LimitsSource, ManagedSet, OnUnavailable, StoredLimits, Target,
};
pub use login::{login_of, principal_of};
pub use name::{DEFAULT_RESOURCE, NameError, NameKind};
pub use page::PageRequest;
pub use registry::{
    Finding, Inspection, Migrated, MigrationPlan, Namespace, NamespaceStatus, PurgeProgress, Purged,
    Registry, RegistryBuilder, VersionRecord,
};
pub use shared_set::{Opening, REMOVED_MAX, SharedSet, UNWRITTEN};
pub use ticket::TICKET_KEPT;
pub use token::TOKEN_BYTES_MAX;
pub use tollgate_store::BucketStatus;
pub use tollgate_store::records::{Cursor, Page};
pub use tollgate_store::usage::Window;
pub use usage::{LimitUsage, UsageQuery, UsageRow, UsageSummary, WindowUsage};
pub use waiters::{SeenWaiter, WAITERS_SEEN_MAX, WaiterRecord};
