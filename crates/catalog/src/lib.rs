//! The catalog of a limiter: namespaces, entities, stored limits, disabled entities and resources,
//! audit events and usage.
//!
//! It is written once, over any [`Backend`](tollgate_store::Backend). A [`Registry`] has the
//! namespaces of a store. A [`Catalog`] has everything of one namespace, and resolves the buckets
//! that a call takes from: the [`EntityChain`] of an entity and the ancestors it cascades to, with
//! the limits in force for each.
//!
//! ```
//! use std::sync::Arc;
//! use tollgate_catalog::{Level, NewEntity, Registry};
//! use tollgate_core::{Limit, Limits};
//! use tollgate_store::Memory;
//!
//! let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
//! catalog.create_entity(NewEntity::new("org")).wait()?;
//! catalog.create_entity(NewEntity::new("user-1").parent("org").cascades(true)).wait()?;
//! catalog.set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 100)])?).wait()?;
//! let chain = catalog.chain("user-1", "gpt-4").wait()?;
//! let entities: Vec<_> = chain.links.iter().map(|link| link.entity.as_str()).collect();
//! assert_eq!(entities, ["user-1", "org"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every change is one transaction with its audit event, and with a check that the namespace
//! exists. No change needs a lock, and none is lost: a change that conflicts with another reads
//! again and retries.

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
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use token::fuzz;
// Hidden: the command `tollgate` uses these for its own default principal.
#[doc(hidden)]
pub use login::{login_of, principal_of};
pub use name::{DEFAULT_RESOURCE, NameError, NameKind};
pub use page::PageRequest;
pub use registry::{
    Finding, Inspection, Migrated, MigrationPlan, Namespace, NamespaceStatus, PurgeProgress, Purged,
    Registry, RegistryBuilder, VersionRecord,
};
// Hidden: limit sets of the crate `tollgate` store their limits with these.
#[doc(hidden)]
pub use shared_set::{Opening, REMOVED_MAX, SharedSet, UNWRITTEN};
pub use ticket::TICKET_KEPT;
pub use token::TOKEN_BYTES_MAX;
pub use tollgate_store::BucketStatus;
pub use tollgate_store::records::{Cursor, Page};
pub use tollgate_store::usage::Window;
pub use usage::{LimitUsage, UsageQuery, UsageRow, UsageSummary, WindowUsage};
pub use waiters::{SeenWaiter, WAITERS_SEEN_MAX, WaiterRecord};
