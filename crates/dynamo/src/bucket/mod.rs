//! Buckets: each an item of the table, or several.

mod address;
mod background;
mod counters;
mod dispatch;
mod draft;
mod expression;
mod item_executor;
mod item_queue;
mod limits;
mod look;
mod merged;
mod parts;
mod peek;
mod prefetch;
mod scope;
mod send;
pub(crate) mod shards;
mod snapshot;
#[cfg(feature = "aggregate")]
mod stream;
mod transact;
mod usage;
mod values;
mod viewing;
mod write;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tollgate_core::{Span, Tick};
use tollgate_store::prefetch::Prefetch;
use tollgate_store::records::RecordsError;
use tollgate_store::usage::UsageRetention;
use tollgate_store::{Mutex, OpId, StepOutcome, StoreError};

#[cfg(feature = "aggregate")]
pub(crate) use stream::Seen;

pub(crate) use address::Address;
use item_queue::{ItemQueue, PendingDetached};

/// How many buckets a process remembers. Beyond that, unused ones are forgotten and read again when needed.
const LANES_MAX: usize = 65_536;

/// How many calls are remembered by their ids.
const CALLS_MAX: usize = 8_192;

/// An item that says what no item of ours says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadItem(pub(crate) String);

/// What a process knows about the buckets of a table.
pub(crate) struct Buckets {
    lanes: Mutex<HashMap<(Address, u32), Arc<ItemQueue>>>,
    calls: Mutex<CallTable>,
    /// The attribute in which items remember the last write of this process.
    writer: String,
    seq: AtomicU64,
    /// Whose turn it is among the items of buckets that are in several.
    turn: AtomicU32,
    /// Detached calls that were not yet tried, of any bucket.
    handed_over: Arc<PendingDetached>,
    pub(crate) settings: BucketSettings,
}

/// How a call that takes from several buckets, such as an entity's and its parent's, is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chains {
    /// Each bucket for itself and all at once, wherever each of them is expected to admit: one write unit for each. What was
    /// taken is given back if one of them refuses. A process that is killed in between leaves what its calls under way took
    /// from some of the buckets and not from others: less than there is until it is refilled, and never more.
    #[default]
    Parallel,
    /// All in one transaction, always: two write units for each, and all or none of it even if the process is killed. Buckets
    /// are not split, because the items of a split one are not written together.
    Transaction,
}

/// What may be chosen about buckets.
#[derive(Clone, Debug)]
pub(crate) struct BucketSettings {
    /// For how long a refusal is believed.
    pub(crate) refusal_kept: Span,
    /// Whether writes may say what changes, rather than what will be.
    pub(crate) fast_path: bool,
    /// In how many items a new bucket is, and in how many it may come to be.
    pub(crate) shards_min: u32,
    pub(crate) shards_max: u32,
    /// How calls that take from several buckets are written.
    pub(crate) chains: Chains,
    /// Whether, and how far, to take ahead.
    pub(crate) prefetch: Option<Prefetch>,
    /// How long usage is kept that is written down.
    pub(crate) usage_retention: UsageRetention,
}

impl Default for BucketSettings {
    fn default() -> BucketSettings {
        BucketSettings {
            refusal_kept: Span::from_secs(1),
            fast_path: true,
            shards_min: 1,
            shards_max: shards::SHARDS_MAX,
            chains: Chains::default(),
            prefetch: None,
            usage_retention: UsageRetention::default(),
        }
    }
}

#[derive(Default)]
struct CallTable {
    by_id: HashMap<OpId, Arc<CallProgressLock>>,
    order: VecDeque<OpId>,
}

/// How far a call has come. Locked while it is being applied, so that it is not applied twice at once.
pub(crate) type CallProgressLock = tokio::sync::Mutex<TxnProgress>;

/// How far a call has come.
#[derive(Default)]
pub(crate) struct TxnProgress {
    pub(crate) is_done: bool,
    /// What came of each of its steps so far.
    pub(crate) steps: Vec<Option<StepOutcome>>,
}

impl Buckets {
    pub(crate) fn new(settings: BucketSettings) -> Result<Buckets, getrandom::Error> {
        // As many as there may be writers to one item, and a chance of less than one in 10^9 that two of ten are one.
        let writer = format!("w_{:07x}", getrandom::u32()? >> 4);
        let (lanes, calls) = (Mutex::default(), Mutex::default());
        Ok(Buckets {
            lanes,
            calls,
            writer,
            seq: AtomicU64::new(0),
            turn: AtomicU32::new(0),
            handed_over: Arc::default(),
            settings,
        })
    }

    /// The way to the first item of a bucket, which is mostly the only one.
    fn lane(&self, address: &Address) -> Arc<ItemQueue> {
        self.part_lane(address, 0)
    }

    /// The way to an item of a bucket.
    fn part_lane(&self, address: &Address, shard: u32) -> Arc<ItemQueue> {
        let key = (address.clone(), shard);
        let mut lanes = self.lanes.lock();
        if let Some(lane) = lanes.get(&key) {
            return Arc::clone(lane);
        }
        if lanes.len() >= LANES_MAX {
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1 || lane.is_unsure() || lane.is_watched());
        }
        Arc::clone(lanes.entry(key).or_insert_with(|| Arc::new(ItemQueue::new(shard))))
    }

    /// The number of the next write: larger than any before, and than the time, so that it says when it was.
    fn next_seq(&self, now: Tick) -> u64 {
        let next = |last: u64| Some(last.saturating_add(1).max(now.as_micros()));
        let last = self.seq.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        last.unwrap_or_default().saturating_add(1).max(now.as_micros())
    }

    /// A number unlike any other of this process.
    pub(crate) fn count(&self) -> u64 {
        self.next_seq(Tick::ZERO)
    }

    /// What came of the steps of a call so far.
    fn progress(&self, id: OpId) -> Arc<CallProgressLock> {
        let mut calls = self.calls.lock();
        if let Some(progress) = calls.by_id.get(&id) {
            return Arc::clone(progress);
        }
        if calls.order.len() >= CALLS_MAX
            && let Some(oldest) = calls.order.pop_front()
        {
            calls.by_id.remove(&oldest);
        }
        let progress = Arc::<CallProgressLock>::default();
        calls.by_id.insert(id, Arc::clone(&progress));
        calls.order.push_back(id);
        progress
    }

    /// Forgets a call that was undone, so that it may be made again.
    fn forget_call(&self, id: OpId) {
        self.calls.lock().by_id.remove(&id);
    }

    /// Forgets what is known of buckets that are deleted.
    fn forget(&self, address: &Address) {
        self.lanes.lock().retain(|(other, _), _| other != address);
    }
}

/// What it is to a caller who had no tests.
pub(crate) fn without_tests(error: RecordsError) -> StoreError {
    match error {
        RecordsError::Store(error) => error,
        other => StoreError::Refused(other.to_string()),
    }
}
