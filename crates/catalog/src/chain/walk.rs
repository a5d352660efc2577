//! From an entity up to those it cascades to.

use tollgate_core::{Limits, Tick};
use tollgate_store::{CHAIN_MAX, Key};

use super::read::{ChainRecords, SOURCES};
use super::{ChainLink, EntityChain};
use crate::cache::{CacheEntry, CacheEpoch, CachedRecord};
use crate::disable::{Access, Switches};
use crate::error::Switchable;
use crate::{Catalog, CatalogError, LimitsSource, OnUnavailable, Result};

/// How often the way up is walked if there is something wrong with it.
const WALKS_MAX: usize = 3;

impl Catalog {
    /// The chain of an entity, whose own limits are those given, if any are.
    ///
    /// What is remembered of one entity may be older than what is remembered of the next, and a way that was there at no
    /// moment may go round in circles. So before that is believed all of it is read again.
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
        let moment = self.moment();
        let (mut links, mut expires, mut on_unavailable) = (Vec::<ChainLink>::new(), moment.expires, None);
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
            let facts = self.facts(&moment, &entity, resource).await?;
            // The entity that calls may be an exception; those it cascades to are only charged.
            let is_exempt = *is_exempt.get_or_insert_with(|| facts.access(resource) == Some(Access::On));
            facts.refuse_disabled(&entity, resource, is_exempt)?;
            expires = expires.min(facts.expires());
            on_unavailable = facts.on_unavailable();
            next = facts.cascades_to(resource);
            let given = given.take().map(|limits| (limits.clone(), LimitsSource::Call));
            links.push(facts.link(entity, resource, given)?);
        }
        self.shared().cache.saw_on_unavailable(on_unavailable);
        Ok(EntityChain { links, on_unavailable, moment, expires })
    }

    /// The entity's own link, whether it is disabled or not.
    pub(crate) async fn own_link(&self, entity: &str, resource: &str) -> Result<ChainLink> {
        let facts = self.facts(&self.moment(), entity, resource).await?;
        facts.link(entity.to_owned(), resource, None)
    }

    fn moment(&self) -> CacheEpoch {
        self.shared().cache.moment(self.backend().revision(), self.now())
    }
}

impl ChainRecords {
    fn entries(&self) -> impl Iterator<Item = &CacheEntry> {
        [&self.entity, &self.entity_switch, &self.resource_switch].into_iter().chain(&self.configs)
    }

    fn expires(&self) -> Tick {
        self.entries().map(|entry| entry.expires).min().unwrap_or(Tick::ZERO)
    }

    /// What is said of the entity and the resource.
    fn access(&self, resource: &str) -> Option<Access> {
        switches(&self.entity_switch)?.access(resource)
    }

    /// Refuses what is switched off; that the resource is does not matter to an entity that is exempt.
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

    /// The parent, if a call to the resource is charged to it, too. What is said of the entity comes before what is said of
    /// the resource, and both come before what the entity is like.
    fn cascades_to(&self, resource: &str) -> Option<String> {
        let CachedRecord::Entity { parent, cascades } = &self.entity.known else { return None };
        let of_entity = switches(&self.entity_switch).and_then(|it| it.cascade_for(resource));
        let said = of_entity.or_else(|| switches(&self.resource_switch)?.cascade);
        parent.clone().filter(|_| said.unwrap_or(*cascades))
    }

    fn on_unavailable(&self) -> Option<OnUnavailable> {
        match &self.configs.last()?.known {
            CachedRecord::Config(stored) => stored.on_unavailable,
            _ => None,
        }
    }

    /// The limits given, or those of the first level that has some.
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

    /// The limits and where they come from. Their version is the least of what they were found by: that a level above
    /// has no limits may be older news than what the level itself says.
    fn limits(&self) -> Option<(Limits, LimitsSource)> {
        let mut version = u64::MAX;
        for (entry, source) in self.configs.iter().zip(SOURCES) {
            version = version.min(entry.version);
            if let CachedRecord::Config(stored) = &entry.known
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
    match &entry.known {
        CachedRecord::Switches(switches) => Some(switches),
        _ => None,
    }
}
