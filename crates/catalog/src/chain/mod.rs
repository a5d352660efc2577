//! Chains: an entity, the ancestors it cascades to, and the limits in force for each.

mod read;
mod walk;

use std::sync::Arc;

use tollgate_core::{Limits, Tick};
use tollgate_store::{Key, Reply};

use crate::cache::CacheEpoch;
use crate::{Catalog, CatalogError, LimitsSource, OnUnavailable, Result, name};

/// The buckets that a call of an entity to a resource takes from: the entity's first, then its
/// parent's as long as each cascades, with the limits in force for each.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Level, LimitsSource, Registry};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// catalog.set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 100)])?).wait()?;
/// let chain = catalog.chain("user-1", "gpt-4").wait()?;
/// assert_eq!((chain.links.len(), chain.links[0].source), (1, LimitsSource::System));
/// assert!(catalog.is_current(&chain, catalog.backend().clock().now()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EntityChain {
    /// The buckets, the entity's own first.
    pub links: Vec<ChainLink>,
    /// The policy of the system for a store that does not answer.
    pub on_unavailable: Option<OnUnavailable>,
    epoch: CacheEpoch,
    expires: Tick,
}

/// A bucket of a chain, and the limits in force for it.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Level, LimitsSource, Registry};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// catalog.set_limits(Level::Entity("user-1"), &Limits::new([Limit::per_minute("rpm", 5)])?).wait()?;
/// let chain = catalog.chain("user-1", "gpt-4").wait()?;
/// let link = &chain.links[0];
/// assert_eq!(link.key.pair(), Some(("user-1", "gpt-4")));
/// assert_eq!((link.limits[0].capacity(), link.source), (5, LimitsSource::EntityDefault));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChainLink {
    /// The id of the entity.
    pub entity: String,
    /// The key of the bucket: the entity and the resource.
    pub key: Key,
    /// The limits, as of a version of the namespace's config.
    pub limits: Limits,
    /// The level that the limits come from.
    pub source: LimitsSource,
}

impl Catalog {
    /// Returns the buckets that a call of the entity to the resource takes from. An entity that was
    /// never created has no parent.
    ///
    /// Cached records are not read again; otherwise it costs one read for each entity of the chain.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`NoLimits`](crate::CatalogError::NoLimits), [`Disabled`](crate::CatalogError::Disabled) and
    /// [`ChainTooLong`](crate::CatalogError::ChainTooLong), a [`Cycle`](crate::CatalogError::Cycle)
    /// that another program made, an invalid name, an unreadable record, or an error of the store.
    pub fn chain<'a>(&'a self, entity: &'a str, resource: &'a str) -> Reply<'a, Result<Arc<EntityChain>>> {
        Reply::later(async move {
            name::ENTITY.check(entity)?;
            name::RESOURCE.check(resource)?;
            Ok(Arc::new(self.walk_up(entity, resource, None).await?))
        })
    }

    /// Returns the [`chain`](Catalog::chain) with `limits` for the entity itself instead of its
    /// stored ones. The ancestors that it cascades to have their own limits.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// As [`chain`](Catalog::chain), [`EmptyLimits`](crate::CatalogError::EmptyLimits), and
    /// [`Limits`](crate::CatalogError::Limits) for a custom limit, which no store can keep.
    pub fn chain_with<'a>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        limits: &'a Limits,
    ) -> Reply<'a, Result<Arc<EntityChain>>> {
        Reply::later(async move {
            name::ENTITY.check(entity)?;
            name::RESOURCE.check(resource)?;
            if limits.is_empty() {
                return Err(CatalogError::EmptyLimits("the call".into()));
            }
            limits.check_storable()?;
            Ok(Arc::new(self.walk_up(entity, resource, Some(limits)).await?))
        })
    }

    /// Returns true if a chain is still what [`chain`](Catalog::chain) or
    /// [`chain_with`](Catalog::chain_with) would return, by the cache. It costs a few comparisons.
    #[inline]
    pub fn is_current(&self, chain: &EntityChain, now: Tick) -> bool {
        let shared = self.shared();
        shared.cache.holds(&chain.epoch, chain.expires, shared.backend.revision(), now)
    }

    /// Removes the entity, its ancestors and the resource from the cache: for a caller whose bucket
    /// has later limits.
    pub fn refresh(&self, entity: &str, resource: &str) {
        self.forget_chain(entity, resource);
    }

    /// Returns the latest known policy of the system for a store that does not answer, for when it
    /// does not.
    pub fn last_on_unavailable(&self) -> Option<OnUnavailable> {
        self.shared().cache.on_unavailable()
    }
}
