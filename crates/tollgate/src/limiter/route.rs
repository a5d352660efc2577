//! Routes: the cached buckets and limits of an entity and a resource.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tollgate_catalog::EntityChain;
use tollgate_store::{CellChain as Cells, LocalBucket, Mutex};

/// How many routes are kept. They only save time: one that is not kept is found again.
pub(crate) const ROUTES_MAX: usize = 4_096;

const SHARDS: usize = 64;

/// Which buckets a call takes from, under which limits.
pub(crate) struct Route {
    entity: Box<str>,
    resource: Box<str>,
    pub(crate) chain: Arc<EntityChain>,
    /// The buckets themselves, if they are in this process.
    pub(crate) pins: Option<LocalBuckets>,
    /// Whether a demand that can never fit the limits has put them in force.
    pub(crate) is_in_force: AtomicBool,
}

/// The buckets of a route, in the order of its links.
pub(crate) struct LocalBuckets {
    pub(crate) pins: Box<[LocalBucket]>,
    /// The same to be taken together, if there are several.
    pub(crate) cells: Option<Cells>,
}

/// The routes that were used lately.
pub(crate) struct Routes {
    hasher: RandomState,
    shards: Box<[Mutex<HashTable<Arc<Route>>>]>,
}

impl Route {
    pub(crate) fn new(
        entity: &str,
        resource: &str,
        chain: Arc<EntityChain>,
        pins: Option<Box<[LocalBucket]>>,
    ) -> Route {
        let pins = pins.map(|pins| {
            let cells = || Cells::new(pins.iter().map(|pin| Arc::clone(&pin.cell)).collect()).ok();
            LocalBuckets { cells: if pins.len() > 1 { cells() } else { None }, pins }
        });
        let is_in_force = AtomicBool::new(false);
        Route { entity: entity.into(), resource: resource.into(), chain, pins, is_in_force }
    }

    /// The only bucket of the route, if it is in this process.
    #[inline]
    pub(crate) fn only_pin(&self) -> Option<&LocalBucket> {
        match self.pins.as_ref().map(|pins| &*pins.pins) {
            Some([only]) => Some(only),
            _ => None,
        }
    }

    /// Returns whether one of its buckets was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.pins.as_ref().is_some_and(|pins| pins.pins.iter().any(|pin| pin.cell.is_removed()))
    }

    pub(crate) fn entity(&self) -> &str {
        &self.entity
    }

    pub(crate) fn resource(&self) -> &str {
        &self.resource
    }

    #[inline]
    fn is_of(&self, entity: &str, resource: &str) -> bool {
        *self.entity == *entity && *self.resource == *resource
    }
}

impl Default for Routes {
    fn default() -> Routes {
        let shards = (0..SHARDS).map(|_| Mutex::new(HashTable::new())).collect();
        Routes { hasher: RandomState::default(), shards }
    }
}

impl Routes {
    #[inline]
    fn hash(&self, entity: &str, resource: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        entity.hash(&mut hasher);
        resource.hash(&mut hasher);
        hasher.finish()
    }

    /// The table takes the low bits of the hash for the place and the top seven for the tag, so the shard is chosen by
    /// bits in between.
    #[inline]
    fn shard(&self, hash: u64) -> &Mutex<HashTable<Arc<Route>>> {
        &self.shards[(hash >> 40) as usize % SHARDS]
    }

    /// Returns the cached route, current or not.
    #[inline]
    pub(crate) fn get(&self, entity: &str, resource: &str) -> Option<Arc<Route>> {
        let hash = self.hash(entity, resource);
        self.shard(hash).lock().find(hash, |route| route.is_of(entity, resource)).cloned()
    }

    /// Keeps a route, in place of an older one and, if the table is full, of any other.
    pub(crate) fn keep(&self, route: Arc<Route>) {
        let hash = self.hash(&route.entity, &route.resource);
        // Dropped when the lock is free: a route may be the last to have its bucket.
        let _replaced;
        let mut table = self.shard(hash).lock();
        match table.find_mut(hash, |other| other.is_of(&route.entity, &route.resource)) {
            Some(place) => _replaced = Some(std::mem::replace(place, route)),
            None => {
                _replaced = (table.len() >= ROUTES_MAX / SHARDS).then(|| evict(&mut table, hash)).flatten();
                table.insert_unique(hash, route, |other| self.hash(&other.entity, &other.resource));
            }
        }
    }

    /// Forgets all routes, and with them lets go of the buckets they had.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let forgotten = std::mem::take(&mut *shard.lock());
            drop(forgotten);
        }
    }

    /// Forgets a route.
    pub(crate) fn forget(&self, entity: &str, resource: &str) {
        let hash = self.hash(entity, resource);
        // Declared before the lock is taken, so dropped after it is free.
        let _forgotten;
        let mut table = self.shard(hash).lock();
        _forgotten =
            table.find_entry(hash, |route| route.is_of(entity, resource)).map(|entry| entry.remove().0).ok();
    }
}

/// Takes out whatever comes first behind a place that the hash chooses: practically random, and it costs nothing.
fn evict(table: &mut HashTable<Arc<Route>>, hash: u64) -> Option<Arc<Route>> {
    let places = table.num_buckets();
    let start = (hash >> 20) as usize % places.max(1);
    let victim =
        (0..places).map(|step| (start + step) % places).find(|place| table.get_bucket(*place).is_some())?;
    table.get_bucket_entry(victim).ok().map(|entry| entry.remove().0)
}
