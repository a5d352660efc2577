//! Executing operations on one item: decide on what was last seen of it, and send one write for all of them.

use std::sync::Arc;

use tollgate_core::Tick;
use tollgate_store::{Op, Step, StepOutcome, StoreError};

use super::address::Address;
use super::background::BackgroundJobs;
use super::draft::ItemDraft;
use super::item_op::{ItemOp, OpResult};
use super::item_queue::{ItemQueue, ItemState, UnknownWrite};
use super::read::read_item;
use super::send::{GivenUp, ItemWriter, WriteResult};
use super::shard_map::ShardMap;
use super::snapshot::ItemSnapshot;
use super::usage_writer::correct_usage;
use crate::service::{Attempts, TableService};

/// Executes operations on single items.
pub(super) struct ItemExecutor {
    pub(super) writer: ItemWriter,
    pub(super) shards: ShardMap,
    pub(super) jobs: Arc<BackgroundJobs>,
}

impl ItemExecutor {
    pub(super) fn service(&self) -> &Arc<TableService> {
        &self.writer.service
    }

    pub(super) fn now(&self) -> Tick {
        self.writer.service.clock.now()
    }

    /// Submits an operation to the queue of an item. The first caller that gets the lock executes it and all that queued
    /// meanwhile, with one write.
    pub(super) async fn submit(
        &self,
        address: &Address,
        shard: u32,
        op: ItemOp,
    ) -> Result<OpResult, StoreError> {
        let queue = self.shards.queue(address, shard);
        let mut answered = queue.join(op);
        loop {
            let mut state = queue.state.lock().await;
            if let Ok(answer) = answered.try_recv() {
                return answer;
            }
            let queued = queue.next();
            let ops: Vec<ItemOp> = queued.iter().map(|queued| queued.op.clone()).collect();
            match self.execute(address, &queue, &mut state, &ops).await {
                Ok(results) => {
                    let answers = queued.into_iter().zip(results);
                    answers.for_each(|(queued, result)| queued.answer(Ok(result)));
                }
                Err(error) => queued.into_iter().for_each(|queued| queued.answer(Err(error.clone()))),
            }
        }
    }

    /// Executes operations on an item, in order, with one write.
    async fn execute(
        &self,
        address: &Address,
        queue: &ItemQueue,
        state: &mut ItemState,
        ops: &[ItemOp],
    ) -> Result<Vec<OpResult>, StoreError> {
        self.resolve_unknown(address, queue, state).await?;
        state.doubt_absence();
        let (mut attempts, mut is_current) = (Attempts::start(), false);
        loop {
            if !state.is_known() {
                self.read(address, queue, state).await?;
                is_current = true;
            }
            self.note_shards(address, queue, state);
            let (draft, results) = self.decide(queue, state, ops);
            if !is_current && !results.iter().all(|result| self.is_fresh_enough(result, &draft, state)) {
                state.forget();
                continue;
            }
            if !draft.is_changed {
                note_use(queue, &draft, &results);
                correct_usage(&self.writer, address, &draft).await?;
                return Ok(results);
            }
            match self.writer.send(address, &draft, &mut attempts).await {
                Ok(WriteResult::Made(snapshot)) => {
                    state.update(Some(*snapshot), draft.now);
                    note_use(queue, &draft, &results);
                    self.follow_up(address, queue, state);
                    return Ok(results);
                }
                Ok(WriteResult::Missed(snapshot)) => {
                    state.update(snapshot.map(|snapshot| *snapshot), draft.now);
                    is_current = true;
                    if self.service().pause_after_miss(&mut attempts).await? {
                        state.forget();
                    }
                }
                Err(GivenUp::NotMade(error)) => {
                    state.forget();
                    return Err(error);
                }
                Err(GivenUp::Unknown(seq, error)) => {
                    self.leave_unknown(
                        address,
                        queue,
                        state,
                        seq,
                        ops.iter().cloned().zip(results).collect(),
                    );
                    return Err(error);
                }
            }
        }
    }

    /// Decides all operations, in order, on what was last seen of the item.
    fn decide(&self, queue: &ItemQueue, state: &ItemState, ops: &[ItemOp]) -> (ItemDraft, Vec<OpResult>) {
        let mut draft = ItemDraft::new(state.snapshot(), queue.last(), self.now());
        let results = ops.iter().map(|op| {
            let remembered = state.remembered(op).map(OpResult::Done);
            let redirected = || self.redirected(queue, state.snapshot(), op);
            remembered.or_else(redirected).unwrap_or_else(|| op.apply(&mut draft))
        });
        let results = results.collect();
        (draft, results)
    }

    /// Starts what a write makes necessary, in the background.
    fn follow_up(&self, address: &Address, queue: &ItemQueue, state: &mut ItemState) {
        if state.is_hot() {
            state.cool();
            self.jobs.double(address);
        }
        if state.snapshot().is_some_and(|snapshot| !snapshot.counters.aside.is_empty()) {
            self.jobs.write_usage(address, queue);
        }
    }

    /// Remembers in how many items the bucket was seen to be.
    fn note_shards(&self, address: &Address, queue: &ItemQueue, state: &ItemState) {
        let first = self.shards.first(address);
        match state.snapshot() {
            Some(snapshot) => first.set_shards(snapshot.shards),
            // Without this item there is no such bucket, and the caller that makes it makes all of it.
            None if queue.shard() > 0 => {
                first.set_shards(1);
                if let Ok(mut state) = first.state.try_lock() {
                    state.forget();
                }
            }
            None => {}
        }
    }

    /// Returns where an operation has to go instead, if it cannot be decided on this item.
    fn redirected(
        &self,
        queue: &ItemQueue,
        snapshot: Option<&ItemSnapshot>,
        op: &ItemOp,
    ) -> Option<OpResult> {
        let step = op.step();
        let Some(snapshot) = snapshot else {
            let is_split = self.writer.settings.shards_min > 1;
            return match queue.shard() {
                0 if is_split && step.creates() => Some(OpResult::Whole),
                0 => None,
                _ => Some(OpResult::Moved),
            };
        };
        if snapshot.shards != op.shards {
            return Some(OpResult::Moved);
        }
        // Other limits have to be put in force for all items, and what one cannot pay all of them owe.
        let has_other_limits = || step.takes().is_some() && !snapshot.stored.is_under(step.place.limits);
        let is_about_all =
            snapshot.shards > 1 && (has_other_limits() || !self.can_pay(queue, snapshot, &step));
        is_about_all.then_some(OpResult::Whole)
    }

    /// Returns whether an item has what a settlement charges beyond what was taken.
    fn can_pay(&self, queue: &ItemQueue, snapshot: &ItemSnapshot, step: &Step<'_>) -> bool {
        let (Op::Settle(usage) | Op::SettleExisting(usage)) = &step.op else { return true };
        let left = snapshot.stored.bucket.peek(&snapshot.stored.limits, self.now().max(queue.last()));
        let charges = step.place.limits.iter().zip(usage.used).zip(usage.reserved.amounts());
        charges.filter(|((_, used), reserved)| used > reserved).all(|((limit, used), reserved)| {
            let status = left.iter().find(|status| status.limit().name() == limit.name());
            status.is_none_or(|status| i128::from(status.available()) >= i128::from(used - reserved))
        })
    }

    /// Returns whether a result on what was seen some time ago still holds. A write checks that itself.
    fn is_fresh_enough(&self, result: &OpResult, draft: &ItemDraft, state: &ItemState) -> bool {
        match result {
            OpResult::Denied(_) => draft.now.since(state.seen_at) < self.writer.settings.denial_cached,
            OpResult::Done(StepOutcome::Renewed(false)) => false,
            // Versions only grow.
            OpResult::Done(_) | OpResult::Stale | OpResult::Moved | OpResult::Whole => true,
        }
    }

    /// Reads the item.
    pub(super) async fn read(
        &self,
        address: &Address,
        queue: &ItemQueue,
        state: &mut ItemState,
    ) -> Result<(), StoreError> {
        let snapshot = read_item(self.service(), address, queue.shard()).await?;
        state.update(snapshot, self.now());
        Ok(())
    }

    /// Notes that it is unknown whether a write was made, and finds out in the background.
    pub(super) fn leave_unknown(
        &self,
        address: &Address,
        queue: &ItemQueue,
        state: &mut ItemState,
        seq: u64,
        ops: Vec<(ItemOp, OpResult)>,
    ) {
        state.forget();
        state.unknown = Some(UnknownWrite { seq, ops, undone_by: None });
        self.jobs.resolve(address, queue.shard());
    }

    /// Finds out what came of a write whose answer was lost, before anything else is written. What it took is given
    /// back, because its caller got the answer that nothing is known; what else it did is remembered as done.
    pub(super) async fn resolve_unknown(
        &self,
        address: &Address,
        queue: &ItemQueue,
        state: &mut ItemState,
    ) -> Result<(), StoreError> {
        if state.unknown.is_none() {
            return Ok(());
        }
        self.read(address, queue, state).await?;
        let mut attempts = Attempts::start();
        loop {
            let last = state.snapshot().and_then(|snapshot| self.writer.last_write(snapshot));
            let Some(unknown) = &state.unknown else { return Ok(()) };
            let is_undone = unknown.undone_by.is_some() && last == unknown.undone_by;
            // Where it was not made, the next write has a larger number: from then on it cannot be.
            if is_undone || last != Some(unknown.seq) {
                state.unknown = None;
                return Ok(());
            }
            let mut draft = ItemDraft::new(state.snapshot(), queue.last(), self.now());
            for undo in unknown.ops.iter().filter_map(|(op, result)| op.reversed(result)) {
                undo.apply(&mut draft);
            }
            if !draft.is_changed {
                break;
            }
            match self.writer.send(address, &draft, &mut attempts).await {
                Ok(WriteResult::Made(snapshot)) => {
                    state.update(Some(*snapshot), draft.now);
                    break;
                }
                Ok(WriteResult::Missed(snapshot)) => {
                    state.update(snapshot.map(|snapshot| *snapshot), draft.now);
                    if self.service().pause_after_miss(&mut attempts).await? {
                        self.read(address, queue, state).await?;
                    }
                }
                Err(GivenUp::NotMade(error)) => return Err(error),
                Err(GivenUp::Unknown(seq, error)) => {
                    if let Some(unknown) = &mut state.unknown {
                        unknown.undone_by = Some(seq);
                    }
                    return Err(error);
                }
            }
        }
        state.remember_unknown();
        Ok(())
    }
}

/// Remembers when something was applied to an item.
fn note_use(queue: &ItemQueue, draft: &ItemDraft, results: &[OpResult]) {
    if draft.after.is_some() && results.iter().any(OpResult::is_use) {
        queue.note_use(draft.now);
    }
}
