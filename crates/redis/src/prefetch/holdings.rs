use std::collections::HashMap;
use std::sync::Arc;

use tollgate_store::prefetch::PrefetchBuffer;
use tollgate_store::{BucketRef, Key, Mutex, Scope};

/// What is held ahead of one bucket.
pub(super) struct PrefetchedBucket {
    pub(super) namespace: String,
    pub(super) key: Key,
    /// A caller that comes while a portion is being taken waits for it, rather than taking one as well.
    pub(super) stash: Arc<tokio::sync::Mutex<PrefetchBuffer>>,
}

/// What is held ahead, by the names of the buckets.
#[derive(Default)]
pub(super) struct PrefetchedBuckets(Mutex<HashMap<Vec<u8>, Arc<PrefetchedBucket>>>);

impl PrefetchedBuckets {
    pub(super) fn get(&self, name: &[u8]) -> Option<Arc<PrefetchedBucket>> {
        self.0.lock().get(name).cloned()
    }

    /// Returns what is held ahead of a bucket, and whether that is a new one, for which the caller has to start the
    /// idle watch.
    pub(super) fn make(&self, name: &[u8], place: &BucketRef<'_>) -> (Arc<PrefetchedBucket>, bool) {
        let mut holdings = self.0.lock();
        if let Some(holding) = holdings.get(name) {
            return (Arc::clone(holding), false);
        }
        let (namespace, key) = (place.namespace.to_owned(), place.key.clone());
        let holding = Arc::new(PrefetchedBucket { namespace, key, stash: Arc::default() });
        holdings.insert(name.to_vec(), Arc::clone(&holding));
        (holding, true)
    }

    /// Those of buckets of a namespace.
    pub(super) fn of(&self, namespace: &str, scope: Scope<'_>) -> Vec<Arc<PrefetchedBucket>> {
        let is_wanted = |holding: &&Arc<PrefetchedBucket>| {
            let is_in = |(entity, resource): (&str, &str)| scope.has(entity, resource);
            holding.namespace == namespace && holding.key.pair().is_some_and(is_in)
        };
        self.0.lock().values().filter(is_wanted).cloned().collect()
    }

    /// Forgets one of which nothing is held, unless another task has a reference to it.
    pub(super) fn remove(&self, name: &[u8], holding: Arc<PrefetchedBucket>) -> bool {
        const MINE_AND_THE_MAP: usize = 2;
        let mut holdings = self.0.lock();
        let is_alone = Arc::strong_count(&holding) == MINE_AND_THE_MAP;
        if is_alone {
            holdings.remove(name);
        }
        is_alone
    }
}
