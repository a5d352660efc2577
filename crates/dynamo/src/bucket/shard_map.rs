//! The items that buckets are in, and the queue of each.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tollgate_store::Mutex;

use super::address::Address;
use super::item_queue::ItemQueue;

/// How many items a process remembers. Beyond that, unused ones are forgotten and read again when needed.
const QUEUES_MAX: usize = 65_536;

/// What a process knows about the items of buckets.
#[derive(Default)]
pub(super) struct ShardMap {
    queues: Mutex<HashMap<(Address, u32), Arc<ItemQueue>>>,
    /// Counts the takes from buckets that are in several items.
    next: AtomicU32,
}

impl ShardMap {
    /// Returns the queue of the first item of a bucket, which is mostly the only one.
    pub(super) fn first(&self, address: &Address) -> Arc<ItemQueue> {
        self.queue(address, 0)
    }

    /// Returns the queue of an item of a bucket.
    pub(super) fn queue(&self, address: &Address, shard: u32) -> Arc<ItemQueue> {
        let key = (address.clone(), shard);
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get(&key) {
            return Arc::clone(queue);
        }
        if queues.len() >= QUEUES_MAX {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1 || queue.has_unknown_write());
        }
        Arc::clone(queues.entry(key).or_insert_with(|| Arc::new(ItemQueue::new(shard))))
    }

    /// Returns in how many items a bucket is, as far as is known.
    pub(super) fn shards(&self, address: &Address) -> u32 {
        self.first(address).shards()
    }

    pub(super) fn set_shards(&self, address: &Address, shards: u32) {
        self.first(address).set_shards(shards);
    }

    /// Returns the item for the next take: one after the other, so that all are used alike.
    pub(super) fn next_shard(&self, shards: u32) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed) % shards
    }

    /// Forgets what is known of a bucket that was deleted.
    pub(super) fn forget(&self, address: &Address) {
        self.queues.lock().retain(|(other, _), _| other != address);
    }
}
