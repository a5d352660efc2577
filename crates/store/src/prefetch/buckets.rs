//! The buckets of which a process holds something ahead.

use std::collections::HashMap;
use std::sync::Arc;

use super::PrefetchBuffer;
use crate::{BucketRef, Key, Mutex, Scope};

/// A namespace, and a key in it.
type PrefetchKey = (Box<str>, Key);

/// What is held ahead of one bucket.
pub(super) struct PrefetchedBucket {
    pub(super) key: PrefetchKey,
    /// A caller that comes while a portion is being taken waits for it, rather than taking one as well.
    pub(super) buffer: tokio::sync::Mutex<PrefetchBuffer>,
}

/// What is held ahead, by bucket.
#[derive(Default)]
pub(super) struct PrefetchedBuckets(Mutex<HashMap<PrefetchKey, Arc<PrefetchedBucket>>>);

impl PrefetchedBuckets {
    pub(super) fn get(&self, namespace: &str, key: &Key) -> Option<Arc<PrefetchedBucket>> {
        self.0.lock().get(&(namespace.into(), key.clone())).cloned()
    }

    /// Returns what is held ahead of a bucket, and whether that is a new entry, for which the caller has to start the
    /// idle watch.
    pub(super) fn get_or_insert(&self, bucket: &BucketRef<'_>) -> (Arc<PrefetchedBucket>, bool) {
        let key = (bucket.namespace.into(), bucket.key.clone());
        let mut buckets = self.0.lock();
        if let Some(bucket) = buckets.get(&key) {
            return (Arc::clone(bucket), false);
        }
        let bucket = Arc::new(PrefetchedBucket { key: key.clone(), buffer: Default::default() });
        buckets.insert(key, Arc::clone(&bucket));
        (bucket, true)
    }

    /// Returns those of a scope.
    pub(super) fn of(&self, namespace: &str, scope: Scope<'_>) -> Vec<Arc<PrefetchedBucket>> {
        let is_in_scope = |bucket: &&Arc<PrefetchedBucket>| {
            let (of, key) = &bucket.key;
            **of == *namespace && key.pair().is_some_and(|(entity, resource)| scope.has(entity, resource))
        };
        self.0.lock().values().filter(is_in_scope).cloned().collect()
    }

    pub(super) fn remove(&self, namespace: &str, key: &Key) {
        self.0.lock().remove(&(namespace.into(), key.clone()));
    }

    /// Removes a bucket that only its idle watch uses, and returns whether it is not here any more.
    pub(super) fn remove_unused(&self, bucket: &Arc<PrefetchedBucket>) -> bool {
        const WATCH_AND_MAP: usize = 2;
        let mut buckets = self.0.lock();
        let is_here = buckets.get(&bucket.key).is_some_and(|there| Arc::ptr_eq(there, bucket));
        let is_unused = Arc::strong_count(bucket) <= WATCH_AND_MAP;
        if is_here && is_unused {
            buckets.remove(&bucket.key);
        }
        !is_here || is_unused
    }
}
