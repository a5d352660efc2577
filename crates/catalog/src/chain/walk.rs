//! The walk from an entity up to the ancestors it cascades to.

use tollgate_core::{Limits, Tick};
use tollgate_store::{CHAIN_MAX, Key};

use super::read::{ChainRecords, SOURCES};
use super::{ChainLink, EntityChain};
use crate::cache::{CacheEntry, CacheEpoch, CachedRecord};
use crate::disable::{Access, Switches};
use crate::error::Switchable;
use crate::{Catalog, CatalogError, LimitsSource, OnUnavailable, Result};

/// How often the walk is repeated if it finds a cycle or a chain that is too long.
const WALKS_MAX: usize = 3;

impl Catalog {
    /// Returns the chain of an entity, with the given limits for the entity itself, if any.
    ///
    /// The cached record of one entity may be older than that of the next, so a path that never
    /// existed may contain a cycle. Before such an error is returned, all records are read again.
    pub(super) async fn walk_up(
        &self,
        entity: &str,
        resource: &str,
        given: Option<&Limits>,
    ) -> Result<EntityChain> {
        for _ in 1..WALKS_MAX {
            match self.try_walk_up(entity, resource, given).await {
                Err(CatalogError::Cycle { .. } | CatalogError::ChainTooLong(_)) => {
                    self.forget_chain(entity, resource);
                }
                other => return other,
            }
        }
        self.try_walk_up(entity, resource, given).await
    }

    async fn try_walk_up(
        &self,
        entity: &str,
        resource: &str,
        mut given: Option<&Limits>,
    ) -> Result<EntityChain> {
        let epoch = self.epoch();
        let (mut links, mut expires, mut on_unavailable) = (Vec::<ChainLink>::new(), epoch.expires, None);
        let (mut next, mut is_exempt) = (Some(entity.to_owned()), None);
        while let Some(entity) = next {
            if let Some(last) = links.last()
                && links.iter().any(|link| link.entity == entity)
            {
                return Err(CatalogError::Cycle { entity: last.entity.clone(), parent: entity });
            }
            if links.len() == CHAIN_MAX {
                return Err(CatalogError::ChainTooLong(links.swap_remove(0).entity));
            }
            let records = self.chain_records(&epoch, &entity, resource).await?;
            // The calling entity may be an exception; the ancestors it cascades to are only
            // charged.
            let is_exempt = *is_exempt.get_or_insert_with(|| records.access(resource) == Some(Access::On));
            records.refuse_disabled(&entity, resource, is_exempt)?;
            expires = expires.min(records.expires());
            on_unavailable = records.on_unavailable();
            next = records.cascades_to(resource);
            let given = given.take().map(|limits| (limits.clone(), LimitsSource::Call));
            links.push(records.link(entity, resource, given)?);
        }
        self.shared().cache.record_on_unavailable(on_unavailable);
        Ok(EntityChain { links, on_unavailable, epoch, expires })
    }

    /// Returns the entity's own link, even if it is disabled.
    pub(crate) async fn own_link(&self, entity: &str, resource: &str) -> Result<ChainLink> {
        let records = self.chain_records(&self.epoch(), entity, resource).await?;
        records.link(entity.to_owned(), resource, None)
    }

    fn epoch(&self) -> CacheEpoch {
        self.shared().cache.epoch(self.backend().revision(), self.now())
    }
}

impl ChainRecords {
    fn entries(&self) -> impl Iterator<Item = &CacheEntry> {
        [&self.entity, &self.entity_switch, &self.resource_switch].into_iter().chain(&self.configs)
    }

    fn expires(&self) -> Tick {
        self.entries().map(|entry| entry.expires).min().unwrap_or(Tick::ZERO)
    }

    /// Returns the exception for the entity and the resource, if there is one.
    fn access(&self, resource: &str) -> Option<Access> {
        switches(&self.entity_switch)?.access(resource)
    }

    /// Returns an error for a disabled entity or resource. A disabled resource does not matter to
    /// an entity that is exempt.
    fn refuse_disabled(&self, entity: &str, resource: &str, is_exempt: bool) -> Result<()> {
        let is_off = |entry: &CacheEntry| switches(entry).is_some_and(|it| it.is_off);
        let what = if is_off(&self.entity_switch) {
            Switchable::Entity(entity.into())
        } else if self.access(resource) == Some(Access::Off) {
            Switchable::EntityResource(entity.into(), resource.into())
        } else if is_off(&self.resource_switch) && !is_exempt {
            Switchable::Resource(resource.into())
        } else {
            return Ok(());
        };
        Err(CatalogError::Disabled { what })
    }

    /// Returns the parent, if a call to the resource is charged to it, too. The policy of the
    /// entity precedes that of the resource, and both precede the setting of the entity itself.
    fn cascades_to(&self, resource: &str) -> Option<String> {
        let CachedRecord::Entity(entity) = &self.entity.record else { return None };
        let of_entity = switches(&self.entity_switch).and_then(|it| it.cascade_for(resource));
        let policy = of_entity.or_else(|| switches(&self.resource_switch)?.cascade);
        entity.parent.clone().filter(|_| policy.unwrap_or(entity.cascades))
    }

    fn on_unavailable(&self) -> Option<OnUnavailable> {
        match &self.configs.last()?.record {
            CachedRecord::Config(stored) => stored.on_unavailable,
            _ => None,
        }
    }

    /// Returns the link with the given limits, or those of the first level that has some.
    fn link(
        &self,
        entity: String,
        resource: &str,
        given: Option<(Limits, LimitsSource)>,
    ) -> Result<ChainLink> {
        let Some((limits, source)) = given.or_else(|| self.limits()) else {
            return Err(CatalogError::NoLimits { entity, resource: resource.into() });
        };
        let key = Key::new(&[entity.as_str(), resource]);
        Ok(ChainLink { entity, key, limits, source })
    }

    /// Returns the limits and their source. Their version is the least of the records that they
    /// were found by: the record of a level without limits may be older than that of the level with
    /// them.
    fn limits(&self) -> Option<(Limits, LimitsSource)> {
        let mut version = u64::MAX;
        for (entry, source) in self.configs.iter().zip(SOURCES) {
            version = version.min(entry.version);
            if let CachedRecord::Config(stored) = &entry.record
                && stored.have_limits()
            {
                let limits = stored.limits.clone();
                let limits = if limits.version() == version { limits } else { limits.at_version(version) };
                return Some((limits, source));
            }
        }
        None
    }
}

fn switches(entry: &CacheEntry) -> Option<&Switches> {
    match &entry.record {
        CachedRecord::Switches(switches) => Some(switches),
        _ => None,
    }
}
