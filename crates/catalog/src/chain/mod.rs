//! Chains: an entity, those it cascades to, and the limits in force for each.

mod read;
mod walk;

use std::sync::Arc;

use tollgate_core::{Limits, Tick};
use tollgate_store::{Key, Reply};

use crate::cache::CacheEpoch;
use crate::{Catalog, CatalogError, LimitsSource, OnUnavailable, Result, name};

/// What a call of an entity to a resource takes from: the entity's bucket first, then its parent's while each
/// cascades, with the limits in force for each.
#[derive(Clone, Debug)]
pub struct EntityChain {
    /// The buckets, the entity's own first.
    pub links: Vec<ChainLink>,
    /// What the system says about a store that does not answer.
    pub on_unavailable: Option<OnUnavailable>,
    moment: CacheEpoch,
    expires: Tick,
}

/// A bucket of a chain, and the limits in force for it.
#[derive(Clone, Debug)]
pub struct ChainLink {
    /// The entity.
    pub entity: String,
    /// The bucket: the entity and the resource.
    pub key: Key,
    /// The limits, as of a version of the namespace's config.
    pub limits: Limits,
    /// The level that they come from.
    pub source: LimitsSource,
}

impl Catalog {
    /// What a call of the entity to the resource takes from. An entity that was never created has no parent.
    ///
    /// What is remembered is not read again; what is not costs one read for each entity of the chain.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`NoLimits`](crate::CatalogError::NoLimits), [`Disabled`](crate::CatalogError::Disabled) and
    /// [`ChainTooLong`](crate::CatalogError::ChainTooLong), a [`Cycle`](crate::CatalogError::Cycle) that another program
    /// made, a name that is not valid, a record that cannot be read, or the store's.
    pub fn chain<'a>(&'a self, entity: &'a str, resource: &'a str) -> Reply<'a, Result<Arc<EntityChain>>> {
        Reply::later(async move {
            name::ENTITY.check(entity)?;
            name::RESOURCE.check(resource)?;
            Ok(Arc::new(self.walk_up(entity, resource, None).await?))
        })
    }

    /// As [`chain`](Catalog::chain), with these limits for the entity itself in place of whatever is stored for it. Those
    /// that it cascades to have the limits they have.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
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

    /// Whether a chain is still what [`chain`](Catalog::chain) or [`chain_with`](Catalog::chain_with) would answer, as
    /// far as that is known. Costs a few comparisons.
    #[inline]
    pub fn is_current(&self, chain: &EntityChain, now: Tick) -> bool {
        let shared = self.shared();
        shared.cache.holds(&chain.moment, chain.expires, shared.backend.revision(), now)
    }

    /// Forgets what is remembered of the entity, those above it, and the resource: for when a bucket turned out to know
    /// of later limits.
    pub fn refresh(&self, entity: &str, resource: &str) {
        self.forget_chain(entity, resource);
    }

    /// What the system said last about a store that does not answer, for when it does not.
    pub fn last_on_unavailable(&self) -> Option<OnUnavailable> {
        self.shared().cache.on_unavailable()
    }
}
