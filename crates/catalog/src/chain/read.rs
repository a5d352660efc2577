//! The records that determine a chain, cached or read.
//!
//! Limits carry the version of the namespace's config, so that a bucket can distinguish later ones
//! from earlier ones. A version must never be later than the limits that carry it, or an old limit
//! would pass for a new one. So limits get the version that was seen *before* they were read. If
//! the version has changed by then, they are read again.

use std::sync::Arc;

use tollgate_store::records::{Item, ItemKey};

use crate::cache::{CacheEntry, CacheEpoch, CachedRecord, EntityRecord};
use crate::disable::Switches;
use crate::keys::ChainKeys;
use crate::limits::read_config;
use crate::{Catalog, LimitsSource, Result, keys};

/// How often the records are read when the config keeps changing. After that they are of several
/// versions, of which the earliest counts; that is correct, but may be refused as stale once more.
const READS_MAX: usize = 3;

/// The sources of limits, in the order of precedence.
pub(super) const SOURCES: [LimitsSource; 4] =
    [LimitsSource::Entity, LimitsSource::EntityDefault, LimitsSource::Resource, LimitsSource::System];

/// The records of an entity and a resource.
pub(super) struct ChainRecords {
    pub(super) entity: CacheEntry,
    pub(super) entity_switch: CacheEntry,
    pub(super) resource_switch: CacheEntry,
    /// The limits of each level, in the order of [`SOURCES`].
    pub(super) configs: [CacheEntry; 4],
}

impl Catalog {
    pub(super) async fn chain_records(
        &self,
        epoch: &CacheEpoch,
        entity: &str,
        resource: &str,
    ) -> Result<ChainRecords> {
        let keys = ChainKeys::new(self.namespace_id(), entity, resource);
        let mut found = self.shared().cache.lookup(epoch, &keys.parts());
        for attempt in 1..=READS_MAX {
            if found.iter().all(Option::is_some) {
                break;
            }
            self.read_missing(epoch, &keys, &mut found).await?;
            if attempt < READS_MAX {
                self.forget_older(&mut found);
            }
        }
        let nothing = || CacheEntry { record: CachedRecord::Nothing, version: 0, expires: epoch.expires };
        let [entity, entity_switch, of_resource, of_default, resource_switch, resource, system] =
            found.map(|entry| entry.unwrap_or_else(nothing));
        let configs = [of_resource, of_default, resource, system];
        Ok(ChainRecords { entity, entity_switch, resource_switch, configs })
    }

    /// Drops entries of an earlier version of the config than the latest that was seen.
    fn forget_older(&self, found: &mut [Option<CacheEntry>]) {
        let latest = self.shared().cache.version().unwrap_or(0);
        for entry in found {
            if entry.as_ref().is_some_and(|entry| entry.version < latest) {
                *entry = None;
            }
        }
    }

    pub(super) fn forget_chain(&self, entity: &str, resource: &str) {
        let cache = &self.shared().cache;
        let (mut next, mut seen) = (Some(entity.to_owned()), 0);
        while let Some(entity) = next.take()
            && seen < tollgate_store::CHAIN_MAX
        {
            let keys = ChainKeys::new(self.namespace_id(), &entity, resource);
            let parts = keys.parts();
            // Whether it cascades depends on the resource, too, and removing too much costs only a
            // read.
            if let Some(CachedRecord::Entity(entity)) = cache.peek(parts[0]) {
                next = entity.parent.clone();
            }
            cache.remove(parts);
            seen += 1;
        }
    }

    /// Reads the missing records together with the version of the config, as of one instant.
    async fn read_missing(
        &self,
        epoch: &CacheEpoch,
        keys: &ChainKeys,
        found: &mut [Option<CacheEntry>; ChainKeys::LEN],
    ) -> Result<()> {
        let cache = &self.shared().cache;
        let missing = keys.parts().into_iter().zip(&*found).filter(|(_, found)| found.is_none());
        let mut asked = Vec::with_capacity(ChainKeys::LEN + 1);
        asked.extend(missing.map(|((partition, sort), _)| ItemKey::new(partition, sort)));
        asked.push(keys.config_version());
        let mut items = self.backend().get_many(&asked).await?;
        asked.pop();
        let counted = items.pop().flatten().and_then(|item| item.int("version")).unwrap_or(0);
        let version = u64::try_from(counted).unwrap_or(0);
        cache.record_version(version);
        let mut read = Vec::with_capacity(asked.len());
        let missing = found.iter_mut().filter(|found| found.is_none());
        for ((found, key), item) in missing.zip(asked).zip(items) {
            let record = item.as_ref().map_or(Ok(CachedRecord::Nothing), |item| cached(item, version))?;
            let entry = CacheEntry { record, version, expires: epoch.expires };
            *found = Some(entry.clone());
            read.push((key, entry));
        }
        cache.insert(epoch, read);
        Ok(())
    }
}

/// Converts a record for the cache, by its key.
fn cached(item: &Item, version: u64) -> Result<CachedRecord> {
    if keys::is_entity(&item.key) {
        let (parent, cascades) = (item.text("parent_id").map(str::to_owned), item.is_set("cascade"));
        return Ok(CachedRecord::Entity(Arc::new(EntityRecord { parent, cascades })));
    }
    if keys::is_switch(&item.key) {
        return Ok(CachedRecord::Switches(Arc::new(Switches::of(item))));
    }
    let mut stored = read_config(item)?;
    stored.limits = stored.limits.at_version(version);
    if keys::is_config(&item.key) {
        stored.limits = stored.limits.of_defaults();
    }
    Ok(CachedRecord::Config(Arc::new(stored)))
}
