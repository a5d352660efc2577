//! The wait queues of one process.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use tollgate_core::Tick;

use super::waiter::Waiter;
use super::{Freed, QueueFull, QueueKey, SharedQueues};
use crate::cell_queue::Rank;
use crate::sync::Mutex;
use crate::{Alarm, Clock, Key};

type NamespacedKey = (Box<str>, Key);
type QueueMap = HashMap<NamespacedKey, Vec<LimitQueue>>;

#[derive(Default)]
pub(super) struct LocalQueues {
    pub(super) waiting: AtomicUsize,
    queues: Mutex<QueueMap>,
    /// True if an alarm is set to look for waiters that do not react.
    is_watched: AtomicBool,
    /// The queues of all processes, if there are any.
    shared: OnceLock<Weak<dyn SharedQueues>>,
}

struct LimitQueue {
    limit: Box<str>,
    waiters: BTreeMap<Rank, Arc<Waiter>>,
}

impl LimitQueue {
    /// The first waiter that reacts.
    fn head(&self) -> Option<&Arc<Waiter>> {
        self.waiters.values().find(|waiter| waiter.is_responsive())
    }
}

impl LocalQueues {
    pub(super) fn share(&self, shared: &Arc<dyn SharedQueues>) {
        self.shared.get_or_init(|| Arc::downgrade(shared));
    }

    /// The first waiter of a queue that reacts.
    pub(super) fn head(&self, key: &QueueKey) -> Option<Arc<Waiter>> {
        let queues = self.queues.lock();
        find(&queues, key)?.head().cloned()
    }

    /// The first `max` ranks behind a waiter in a queue. Those that do not react are passed over.
    pub(super) fn behind(&self, key: &QueueKey, rank: Rank, max: usize) -> Vec<Rank> {
        let queues = self.queues.lock();
        let Some(queue) = find(&queues, key) else { return Vec::new() };
        let behind = queue.waiters.range((Bound::Excluded(rank), Bound::Unbounded));
        behind.filter(|(_, waiter)| waiter.is_responsive()).map(|(rank, _)| *rank).take(max).collect()
    }

    /// How many different waiters wait for a limit of a bucket.
    pub(super) fn waiting_for(&self, namespace: &str, bucket: &Key) -> usize {
        let queues = self.queues.lock();
        let Some(limits) = queues.get(&(namespace.into(), bucket.clone())) else { return 0 };
        match &**limits {
            [only] => only.waiters.len(),
            several => {
                let ranks = several.iter().flat_map(|queue| queue.waiters.keys());
                ranks.collect::<std::collections::BTreeSet<_>>().len()
            }
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        let queues = self.queues.lock();
        let mut waiters = queues.values().flatten().flat_map(|queue| queue.waiters.values());
        waiters.any(|waiter| waiter.overdue_at().is_some())
    }

    pub(super) fn has_waiter(&self, namespace: &str, bucket: &Key) -> bool {
        self.queues.lock().contains_key(&(namespace.into(), bucket.clone()))
    }

    pub(super) fn keys(&self) -> Vec<QueueKey> {
        let queues = self.queues.lock();
        let keys = queues.iter().flat_map(|((namespace, bucket), limits)| {
            limits.iter().map(|queue| QueueKey {
                namespace: namespace.clone(),
                bucket: bucket.clone(),
                limit: queue.limit.clone(),
            })
        });
        keys.collect()
    }

    /// Adds a waiter to queues, all of them or none.
    pub(super) fn join(&self, keys: &[QueueKey], waiter: &Arc<Waiter>, max: usize) -> Result<(), QueueFull> {
        let mut queues = self.queues.lock();
        let length = |key: &QueueKey| find(&queues, key).map_or(0, |queue| queue.waiters.len());
        if let Some(waiting) = keys.iter().map(length).find(|waiting| *waiting >= max) {
            return Err(QueueFull { waiting, max });
        }
        for QueueKey { namespace, bucket, limit } in keys {
            let limits = queues.entry((namespace.clone(), bucket.clone())).or_default();
            let index = limits.iter().position(|queue| queue.limit == *limit).unwrap_or_else(|| {
                limits.push(LimitQueue { limit: limit.clone(), waiters: BTreeMap::new() });
                limits.len() - 1
            });
            limits[index].waiters.insert(waiter.rank, Arc::clone(waiter));
        }
        Ok(())
    }

    /// Removes a waiter from queues, and notifies those that are at the head because of it.
    pub(super) fn leave<'k>(&self, keys: impl IntoIterator<Item = &'k QueueKey>, rank: Rank) {
        let mut next = Vec::new();
        let mut queues = self.queues.lock();
        for key in keys {
            let bucket = (key.namespace.clone(), key.bucket.clone());
            let Some(limits) = queues.get_mut(&bucket) else { continue };
            let Some(index) = limits.iter().position(|queue| queue.limit == key.limit) else { continue };
            let queue = &mut limits[index];
            let was_head = queue.head().is_none_or(|head| head.rank >= rank);
            queue.waiters.remove(&rank);
            if was_head {
                next.extend(queue.head().cloned());
            }
            if queue.waiters.is_empty() {
                limits.swap_remove(index);
            }
            if limits.is_empty() {
                queues.remove(&bucket);
            }
        }
        drop(queues);
        next.iter().for_each(|waiter| waiter.notify());
    }

    /// Notifies the heads of the queues of limits that have more room.
    pub(super) fn notify(&self, freed: &Freed) {
        let queues = self.queues.lock();
        let Some(limits) = queues.get(&(freed.namespace.clone(), freed.bucket.clone())) else { return };
        let freed = limits.iter().filter(|queue| freed.has(&queue.limit));
        let heads: Vec<Arc<Waiter>> = freed.filter_map(|queue| queue.head().cloned()).collect();
        drop(queues);
        heads.iter().for_each(|waiter| waiter.notify());
    }

    /// Notifies the head of every queue.
    pub(super) fn notify_all(&self) {
        let queues = self.queues.lock();
        let heads: Vec<Arc<Waiter>> =
            queues.values().flatten().filter_map(|queue| queue.head().cloned()).collect();
        drop(queues);
        heads.iter().for_each(|waiter| waiter.notify());
    }

    /// Looks at `at` for waiters that do not react, unless an alarm is set: that one rings first.
    pub(super) fn watch(self: &Arc<Self>, at: Tick) {
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            let queues: Arc<dyn Alarm> = self.clone();
            Clock::system().alarm(at, Arc::downgrade(&queues));
        }
    }

    /// Finds the waiters that no longer react in front of the first that does.
    fn find_silent(&self) -> SilentWaiter {
        let mut found = SilentWaiter::default();
        let queues = self.queues.lock();
        for ((namespace, bucket), limits) in queues.iter() {
            for LimitQueue { limit, waiters } in limits {
                let is_silent = |waiter: &&Arc<Waiter>| !waiter.is_responsive();
                let silent = waiters.values().take_while(is_silent).count();
                let head = waiters.values().nth(silent);
                found.next_look =
                    [found.next_look, head.and_then(|head| head.overdue_at())].into_iter().flatten().min();
                let new = waiters.values().take(silent).filter(|waiter| !waiter.is_passed_over());
                let known = found.waiters.len();
                found.waiters.extend(new.map(|waiter| {
                    let (namespace, bucket, limit) = (namespace.clone(), bucket.clone(), limit.clone());
                    (QueueKey { namespace, bucket, limit }, Arc::clone(waiter))
                }));
                if found.waiters.len() > known {
                    found.heads.extend(head.cloned());
                }
            }
        }
        found
    }
}

/// Waiters that do not react, and what follows from that.
#[derive(Default)]
struct SilentWaiter {
    /// Those that were not passed over before.
    waiters: Vec<(QueueKey, Arc<Waiter>)>,
    /// The waiters behind them, which are at the head now.
    heads: Vec<Arc<Waiter>>,
    /// When a head that is expected to act will have taken too long.
    next_look: Option<Tick>,
}

impl Alarm for LocalQueues {
    fn ring(self: Arc<Self>, _: Tick, _: &Clock) {
        self.is_watched.store(false, Ordering::Release);
        let SilentWaiter { waiters, heads, next_look } = self.find_silent();
        let shared = self.shared.get().and_then(Weak::upgrade);
        for (key, waiter) in &waiters {
            // So that other processes pass it, too. Before it is notified: it joins again when it reacts.
            shared.iter().for_each(|shared| shared.leave(key, waiter.rank));
            waiter.pass_over();
        }
        heads.iter().for_each(|waiter| waiter.notify());
        if let Some(next_look) = next_look {
            self.watch(next_look);
        }
    }
}

fn find<'q>(queues: &'q QueueMap, key: &QueueKey) -> Option<&'q LimitQueue> {
    let limits = queues.get(&(key.namespace.clone(), key.bucket.clone()))?;
    limits.iter().find(|queue| queue.limit == key.limit)
}
