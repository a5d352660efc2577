//! Queue of one item: one write at a time, and operations that come meanwhile go with the next.
//!
//! So an item can remember the last write of a process in one number, and recognise a write that is sent twice. And a
//! process in which many callers take from one bucket makes one write for all operations that came during the last.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tokio::sync::oneshot;
use tollgate_core::{MILLIS, Tick};
use tollgate_store::{Mutex, OpId, StepOutcome, StoreError};

use super::item_op::{ItemOp, OpResult};
use super::snapshot::{ItemSnapshot, WCU_FULL};

/// How many operations go with one write.
const TOGETHER_MAX: usize = 64;

/// How many steps are remembered whose callers got no answer.
const UNANSWERED_MAX: usize = 256;

/// The queue of one item of a bucket.
#[derive(Default)]
pub(crate) struct ItemQueue {
    shard: u32,
    /// In how many items the bucket is, as far as is known; at the first item. 0 counts as 1.
    shards: AtomicU32,
    queue: Mutex<VecDeque<QueuedOp>>,
    pub(crate) state: tokio::sync::Mutex<ItemState>,
    /// The latest time that something was applied at, in microseconds: a clock that steps back is not followed.
    seen: AtomicU64,
    /// Whether a background job is about to write down its usage.
    writes_usage: AtomicBool,
}

/// What is known of an item.
#[derive(Default)]
pub(crate) struct ItemState {
    seen: LastSeen,
    /// When it was seen.
    pub(crate) seen_at: Tick,
    /// A write of which it is unknown whether it was made.
    pub(crate) unknown: Option<UnknownWrite>,
    /// Steps that were applied though their callers got no answer, by the id of their call: if these are retried, they are
    /// not applied again.
    unanswered: VecDeque<(OpId, usize, StepOutcome)>,
    pressure: Pressure,
}

/// How many writes a second an item still bears, by the revisions that were seen.
#[derive(Default)]
struct Pressure {
    revision: u64,
    at: Tick,
    left: Option<i64>,
}

impl Pressure {
    fn update(&mut self, snapshot: &mut ItemSnapshot, at: Tick) {
        let writes = snapshot.revision.saturating_sub(self.revision);
        let gained = at.since(self.at).as_micros().min(1_000_000) as i64;
        let left = self.left.map_or(WCU_FULL, |left| left.saturating_add(gained).min(WCU_FULL));
        let spent = if self.left.is_some() { writes.min(1_000_000) as i64 * MILLIS as i64 } else { 0 };
        let left = left - spent;
        *self = Pressure { revision: snapshot.revision, at, left: Some(left) };
        snapshot.wcu = left;
    }
}

/// What was last seen of an item.
#[derive(Default)]
enum LastSeen {
    #[default]
    Nothing,
    /// There is no item. Other clients may make one at any time.
    NoItem,
    Item(Box<ItemSnapshot>),
}

impl ItemState {
    /// Returns the item as it was last seen.
    pub(crate) fn snapshot(&self) -> Option<&ItemSnapshot> {
        match &self.seen {
            LastSeen::Item(snapshot) => Some(snapshot),
            LastSeen::Nothing | LastSeen::NoItem => None,
        }
    }

    /// Returns whether the item was read.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.seen, LastSeen::Nothing)
    }

    /// Replaces what is known: by an item, or by its absence.
    pub(crate) fn update(&mut self, snapshot: Option<ItemSnapshot>, at: Tick) {
        self.seen = snapshot.map_or(LastSeen::NoItem, |mut snapshot| {
            self.pressure.update(&mut snapshot, at);
            LastSeen::Item(Box::new(snapshot))
        });
        self.seen_at = at;
    }

    /// Remembers a step that was done without an answer to its caller.
    pub(crate) fn remember(&mut self, op: &ItemOp, done: StepOutcome) {
        let Some(id) = op.call.id else { return };
        if self.unanswered.len() >= UNANSWERED_MAX {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back((id, op.step_index(), done));
    }

    /// Remembers what a write did whose answer was lost. What it took was given back; what else it did stays done.
    pub(crate) fn remember_unknown(&mut self) {
        for (op, result) in self.unknown.take().into_iter().flat_map(|unknown| unknown.ops) {
            if let (OpResult::Done(done), None) = (&result, op.reversed(&result)) {
                self.remember(&op, *done);
            }
        }
    }

    /// Returns what came of an operation that was done without an answer to its caller.
    pub(crate) fn remembered(&self, op: &ItemOp) -> Option<StepOutcome> {
        let mut steps = self.unanswered.iter();
        steps.find(|(id, step, _)| op.is_step(*id, *step)).map(|(_, _, done)| *done)
    }

    /// Returns whether the item is written to more often than it bears.
    pub(crate) fn is_hot(&self) -> bool {
        self.pressure.left.is_some_and(|left| left <= 0)
    }

    /// Counts the writes of the item anew.
    pub(crate) fn cool(&mut self) {
        self.pressure = Pressure::default();
    }

    pub(crate) fn forget(&mut self) {
        self.seen = LastSeen::Nothing;
    }

    /// Forgets that there was no item: a client may have made it since.
    pub(crate) fn doubt_absence(&mut self) {
        if matches!(self.seen, LastSeen::NoItem) {
            self.forget();
        }
    }
}

/// A write of which it is unknown whether it was made.
pub(crate) struct UnknownWrite {
    pub(crate) seq: u64,
    /// The operations in it, and what came of them if it was made.
    pub(crate) ops: Vec<(ItemOp, OpResult)>,
    /// The write that undoes it, if it is unknown as well whether that was made.
    pub(crate) undone_by: Option<u64>,
}

/// An operation in the queue, and where its caller waits for the outcome.
pub(crate) struct QueuedOp {
    pub(crate) op: ItemOp,
    answer: oneshot::Sender<Result<OpResult, StoreError>>,
}

impl ItemQueue {
    pub(crate) fn new(shard: u32) -> ItemQueue {
        ItemQueue { shard, ..ItemQueue::default() }
    }

    pub(crate) fn shard(&self) -> u32 {
        self.shard
    }

    pub(crate) fn shards(&self) -> u32 {
        self.shards.load(Ordering::Acquire).max(1)
    }

    pub(crate) fn set_shards(&self, shards: u32) {
        self.shards.store(shards, Ordering::Release);
    }

    /// Returns the latest time that something was applied at.
    pub(crate) fn last(&self) -> Tick {
        Tick::from_micros(self.seen.load(Ordering::Acquire))
    }

    /// Remembers that something was applied at `now`.
    pub(crate) fn note_use(&self, now: Tick) {
        self.seen.fetch_max(now.as_micros(), Ordering::AcqRel);
    }

    /// Returns whether the caller has to write down the usage, because no job does.
    pub(crate) fn begin_writing_usage(&self) -> bool {
        !self.writes_usage.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn end_writing_usage(&self) {
        self.writes_usage.store(false, Ordering::Release);
    }

    /// Returns whether there is a write of which it is unknown whether it was made.
    pub(crate) fn has_unknown_write(&self) -> bool {
        self.state.try_lock().map_or(true, |state| state.unknown.is_some())
    }

    /// Joins the queue for the next write, and returns the receiver of the answer.
    pub(super) fn join(&self, op: ItemOp) -> oneshot::Receiver<Result<OpResult, StoreError>> {
        let (answer, answered) = oneshot::channel();
        self.queue.lock().push_back(QueuedOp { op, answer });
        answered
    }

    /// Returns the operations that go with the next write, in the order in which they came.
    pub(super) fn next(&self) -> Vec<QueuedOp> {
        let mut queue = self.queue.lock();
        let count = queue.len().min(TOGETHER_MAX);
        queue.drain(..count).collect()
    }
}

impl QueuedOp {
    /// Sends the outcome to the waiter. If the caller is gone, its call is undone elsewhere.
    pub(super) fn answer(self, result: Result<OpResult, StoreError>) {
        let _ = self.answer.send(result);
    }
}
