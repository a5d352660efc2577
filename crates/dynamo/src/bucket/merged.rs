//! Executing operations on all items of a bucket at once, in one transaction.
//!
//! The items are put together, the core decides as if they were one, and they are shared out again. So a demand may be
//! larger than a share, what is available is exact, and shares are even afterwards. It costs a write for each item, and
//! is made again if another client writes to any of them meanwhile; so it is for what a single item cannot decide.

use std::sync::Arc;

use aws_sdk_dynamodb::types::TransactWriteItem;
use tokio::sync::MutexGuard;
use tollgate_core::Tick;
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::{StepOutcome, StoreError};

use super::address::Address;
use super::draft::ItemDraft;
use super::item_executor::ItemExecutor;
use super::item_op::{ItemOp, OpResult};
use super::item_queue::{ItemQueue, ItemState};
use super::parts::{drafts_of, merged};
use super::read::{read_item, read_items};
use super::send::{TransactResult, namespace_gone, predicted};
use super::snapshot::ItemSnapshot;
use super::without_tests;
use super::write::{self, WriteStamp};
use crate::records;
use crate::service::{Attempts, CallFailure, CancelReason};

/// How often it is tried to split a bucket so that each half gets its part. After that the new half begins with nothing,
/// which clients that keep writing to it cannot prevent.
const SPLITS_MAX: usize = 3;

/// Executes operations on whole buckets.
pub(super) struct MergedExecutor {
    items: Arc<ItemExecutor>,
}

/// What to do to a bucket.
pub(super) enum MergedOp<'a> {
    /// An operation, and writes that are made with it or not at all.
    Do(&'a ItemOp, &'a [Write]),
    /// Share it out to so many items.
    ShareOut(u32),
}

/// All items of a bucket, as they are, with no other task in this process writing to them.
struct LockedItems<'a> {
    queues: &'a [Arc<ItemQueue>],
    states: Vec<MutexGuard<'a, ItemState>>,
    snapshots: Vec<Option<ItemSnapshot>>,
}

impl MergedExecutor {
    pub(super) fn new(items: Arc<ItemExecutor>) -> MergedExecutor {
        MergedExecutor { items }
    }

    /// Executes an operation on a whole bucket.
    pub(super) async fn execute(
        &self,
        address: &Address,
        op: MergedOp<'_>,
    ) -> Result<OpResult, RecordsError> {
        let shards_of = &self.items.shards;
        let mut attempts = Attempts::start();
        loop {
            let shards = shards_of.shards(address);
            let queues: Vec<Arc<ItemQueue>> =
                (0..shards).map(|shard| shards_of.queue(address, shard)).collect();
            let mut items = self.lock_all(address, &queues).await?;
            let found = items.snapshots.first().and_then(Option::as_ref).map_or(shards, |first| first.shards);
            if found != shards {
                shards_of.set_shards(address, found);
                continue;
            }
            let (draft, result, wanted, writes) = self.decide(&items, &op);
            let is_done = matches!(result, OpResult::Done(_));
            if !is_done && let Some(failed) = records::failing(self.items.service(), writes).await? {
                return Err(RecordsError::Failed(failed));
            }
            let writes = if is_done { writes } else { &[] };
            if !draft.is_changed && writes.is_empty() {
                return Ok(result);
            }
            let drafts = drafts_of(&items.snapshots, &draft, wanted);
            if self.send(address, &mut items, &drafts, writes, &mut attempts).await? {
                let first = drafts.first().and_then(|draft| draft.after.as_ref());
                shards_of.set_shards(address, first.map_or(1, |snapshot| snapshot.shards));
                queues.iter().for_each(|queue| queue.note_use(draft.now));
                return Ok(result);
            }
            drop(items);
            self.items.service().pause_after_miss(&mut attempts).await?;
        }
    }

    /// Decides an operation on all items as if they were one; with the number of items to share it out to, and the
    /// writes to be made with it.
    fn decide<'o>(
        &self,
        items: &LockedItems<'_>,
        op: &MergedOp<'o>,
    ) -> (ItemDraft, OpResult, u32, &'o [Write]) {
        let (last, now) = (items.last(), self.items.now());
        let is_new = items.snapshots[0].is_none();
        let whole = if is_new { None } else { merged(&items.snapshots, last, now) };
        let mut draft = ItemDraft::new(whole.as_ref(), last, now);
        let (result, wanted, writes) = match op {
            MergedOp::Do(op, writes) => (op.apply(&mut draft), items.snapshots.len() as u32, *writes),
            MergedOp::ShareOut(wanted) => {
                draft.is_changed = draft.after.is_some();
                (OpResult::Done(StepOutcome::Changed), *wanted, &[][..])
            }
        };
        let wanted = if is_new { self.items.writer.settings.shards_min } else { wanted };
        (draft, result, wanted, writes)
    }

    async fn lock_all<'a>(
        &self,
        address: &Address,
        queues: &'a [Arc<ItemQueue>],
    ) -> Result<LockedItems<'a>, StoreError> {
        let mut states = Vec::new();
        for queue in queues {
            let mut state = queue.state.lock().await;
            self.items.resolve_unknown(address, queue, &mut state).await?;
            states.push(state);
        }
        let keys: Vec<(&Address, u32)> = queues.iter().map(|queue| (address, queue.shard())).collect();
        let snapshots = read_items(self.items.service(), &keys).await?;
        Ok(LockedItems { queues, states, snapshots })
    }

    /// Writes all items, and returns whether no other client had written to any of them in between.
    async fn send(
        &self,
        address: &Address,
        items: &mut LockedItems<'_>,
        drafts: &[ItemDraft],
        writes: &[Write],
        attempts: &mut Attempts,
    ) -> Result<bool, RecordsError> {
        let writer = &self.items.writer;
        let now = self.items.now();
        let stamp = writer.next_stamp(now);
        let mut parts: Vec<TransactWriteItem> = Vec::new();
        for (shard, draft) in drafts.iter().enumerate() {
            parts.push(match (&draft.before, &draft.after) {
                (Some(before), None) => writer.delete_item(address, before),
                _ => {
                    let expression = write::expression(draft, address, &stamp, false);
                    writer.update_item(address, shard as u32, &expression)
                }
            });
        }
        let is_new = drafts.iter().any(|draft| draft.before.is_none());
        parts.extend(is_new.then(|| writer.open_check(&address.namespace)));
        let first_record = parts.len();
        parts.extend(records::transact_items(&writer.service, writes, now)?);
        match writer.send_transaction(parts, &stamp, attempts).await {
            Ok(TransactResult::Made) => {
                for (draft, state) in drafts.iter().zip(&mut items.states) {
                    state.update(draft.after.is_some().then(|| predicted(draft, &stamp)), draft.now);
                }
                Ok(true)
            }
            Ok(TransactResult::Canceled(reasons)) => {
                items.forget();
                canceled(address, &reasons, drafts.len()..first_record, &stamp)
            }
            Err(given_up) => {
                // The next caller reads all of them again, and the token keeps it from being made twice.
                items.forget();
                Err(given_up.error().into())
            }
        }
    }

    /// Doubles the items of a bucket, unless another writer was quicker or its limits cannot be shared out any further.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(super) async fn double(&self, address: &Address) -> Result<(), StoreError> {
        let queue = self.items.shards.first(address);
        let before = queue.shards();
        let wanted = before * 2;
        if wanted > self.items.writer.settings.shards_max {
            return Ok(());
        }
        for _ in 0..SPLITS_MAX {
            match self.execute(address, MergedOp::ShareOut(wanted)).await {
                Ok(_) => return Ok(()),
                Err(RecordsError::Store(StoreError::Unavailable(..))) if queue.shards() != before => {
                    return Ok(());
                }
                Err(RecordsError::Store(StoreError::Unavailable(..))) => {}
                Err(error) => return Err(without_tests(error)),
            }
        }
        self.split_blindly(address, before).await
    }

    /// Doubles the items without reading what they have: the new ones begin with nothing and fill up. What the old
    /// ones have beyond what they may have then is lost. Nothing is minted.
    async fn split_blindly(&self, address: &Address, shards: u32) -> Result<(), StoreError> {
        let (writer, wanted) = (&self.items.writer, shards * 2);
        let Some(snapshot) = read_item(&writer.service, address, 0).await? else { return Ok(()) };
        if snapshot.shards != shards
            || snapshot.whole.part(u64::from(wanted) - 1, u64::from(wanted)).is_none()
        {
            self.items.shards.set_shards(address, snapshot.shards);
            return Ok(());
        }
        let mut parts = Vec::new();
        for shard in 0..shards {
            parts.push(writer.update_item(address, shard, &write::share_count(shards, wanted)));
        }
        for shard in shards..wanted {
            let empty = ItemSnapshot::empty(&snapshot, shard, wanted, self.items.now());
            let empty = empty.ok_or_else(|| StoreError::BadCall("the limits make no parts".into()))?;
            parts.push(writer.update_item(address, shard, &write::create(&empty, address)));
        }
        match writer.service.transact(parts).await {
            Ok(()) => self.items.shards.set_shards(address, wanted),
            // Another writer was quicker.
            Err(CallFailure::Canceled(_)) => {}
            Err(failure) => return Err(failure.store_error()),
        }
        Ok(())
    }
}

impl LockedItems<'_> {
    /// Returns the latest time that something was applied at to any of them.
    fn last(&self) -> Tick {
        self.queues.iter().map(|queue| queue.last()).fold(Tick::ZERO, Tick::max)
    }

    fn forget(&mut self) {
        self.states.iter_mut().for_each(|state| state.forget());
    }
}

/// Returns whether a canceled transaction had been made before. Its parts are items, then the check of the namespace at
/// `checks` if there is one, then records.
fn canceled(
    address: &Address,
    reasons: &[CancelReason],
    checks: std::ops::Range<usize>,
    stamp: &WriteStamp<'_>,
) -> Result<bool, RecordsError> {
    let is_ours = |reason: &CancelReason| match reason {
        CancelReason::Condition(Some(old)) => {
            ItemSnapshot::read(old).is_ok_and(|snapshot| stamp.is_of(&snapshot))
        }
        _ => false,
    };
    // An earlier attempt of the same transaction was made, and its answer lost.
    if reasons.iter().take(checks.start).any(is_ours) {
        return Ok(true);
    }
    match reasons.iter().position(|reason| matches!(reason, CancelReason::Condition(_))) {
        Some(failed) if failed >= checks.end => Err(RecordsError::Failed(failed - checks.end)),
        Some(failed) if failed >= checks.start => Err(namespace_gone(address).into()),
        _ => Ok(false),
    }
}
