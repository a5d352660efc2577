//! Operations on one bucket: a step of a transaction, and what came of it.

use std::sync::Arc;

use tollgate_core::{Denial, Tick};
use tollgate_store::workers::unique_id;
use tollgate_store::{BucketRef, Op, OwnedTransaction, Step, StepOutcome, Taken, Transaction};

use super::draft::{ItemDraft, UsageMode};

/// The most items that a bucket is in, and a power of two: the last bits of a time say which.
pub(crate) const SHARDS_MAX: u32 = 32;

/// One step on a bucket.
#[derive(Clone)]
pub(crate) struct ItemOp {
    pub(crate) call: Arc<OwnedTransaction>,
    /// Which of its steps.
    step: usize,
    /// In how many items it takes the bucket to be.
    pub(crate) shards: u32,
    pub(crate) metering: UsageMode,
}

/// What came of an operation.
#[derive(Clone, Debug)]
pub(crate) enum OpResult {
    Done(StepOutcome),
    Denied(Box<Denial>),
    Stale,
    /// The bucket is in another number of items.
    Moved,
    /// Only the whole bucket can decide.
    Whole,
}

impl ItemOp {
    pub(crate) fn new(call: Arc<OwnedTransaction>, step: usize, metering: UsageMode) -> ItemOp {
        ItemOp { call, step, shards: 1, metering }
    }

    pub(crate) fn step(&self) -> Step<'_> {
        self.call.steps().nth(self.step).expect("an operation is a step of its call")
    }

    /// Returns whether this and another are the same step of the same call.
    pub(crate) fn is_step(&self, id: tollgate_store::OpId, step: usize) -> bool {
        self.call.id == Some(id) && self.step == step
    }

    pub(crate) fn step_index(&self) -> usize {
        self.step
    }

    /// Applies the operation to a draft, if the draft admits it.
    pub(crate) fn apply(&self, draft: &mut ItemDraft) -> OpResult {
        let step = self.step();
        if step.takes().is_some() && draft.is_past(&step) {
            return OpResult::Stale;
        }
        if !draft.fits(&step) {
            let denial = draft.denial(&step);
            draft.accept_limits(&step);
            return denial.map_or(OpResult::Stale, |denial| OpResult::Denied(Box::new(denial)));
        }
        OpResult::Done(draft.commit(&step, &self.metering))
    }

    /// Returns the operation that gives back what this one took.
    pub(crate) fn reversed(&self, result: &OpResult) -> Option<ItemOp> {
        let OpResult::Done(StepOutcome::Taken(taken)) = result else { return None };
        let is_metered = self.metering != UsageMode::Off;
        let steps = [self.step()];
        let call = OwnedTransaction::new(&Transaction { id: None, steps: &steps, metered: is_metered });
        let mut call = call.undo(&[StepOutcome::Taken(*taken)])?;
        // It is retried until there is an answer, and may have been applied before.
        call.id = Some(unique_id());
        let op = ItemOp::new(call.into(), 0, UsageMode::undo(is_metered));
        Some(ItemOp { shards: self.shards, ..op })
    }

    /// Returns whether it changes nothing whatever the bucket is: what was used is what was taken.
    pub(crate) fn is_noop(&self) -> bool {
        let step = self.step();
        match &step.op {
            Op::Settle(usage) | Op::SettleExisting(usage) => {
                usage.used == usage.reserved.amounts() && !step.place.limits.have_resources()
            }
            _ => false,
        }
    }

    /// Returns the item that it goes to, of as many as there are, and the operation there; `None` if it is about the whole
    /// bucket. A take goes to the item `next`, and what is given back goes to where it was taken from.
    pub(crate) fn part_for(&self, shards: u32, next: u32) -> Option<(u32, ItemOp)> {
        if shards == 1 {
            return Some((0, ItemOp { shards, ..self.clone() }));
        }
        let step = self.step();
        match &step.op {
            Op::Take { costs, term } => {
                let share = step.place.limits.part(next.into(), shards.into())?;
                let place = BucketRef { limits: &share, ..step.place };
                let steps = [Step { place, op: Op::Take { costs, term: *term } }];
                let call =
                    OwnedTransaction::new(&Transaction { id: self.call.id, steps: &steps, metered: false });
                let op = ItemOp::new(Arc::new(call), 0, self.metering.clone());
                Some((next, ItemOp { shards, ..op }))
            }
            Op::Settle(usage) | Op::SettleExisting(usage) => {
                let shard = (usage.at.as_micros() % u64::from(SHARDS_MAX)) as u32 % shards;
                Some((shard, ItemOp { shards, ..self.clone() }))
            }
            _ => None,
        }
    }
}

impl OpResult {
    /// Returns whether time has passed for the bucket: a refusal leaves it as it was, and so does a renewal.
    pub(crate) fn is_use(&self) -> bool {
        matches!(self, OpResult::Done(done) if !matches!(done, StepOutcome::Renewed(_)))
    }

    pub(crate) fn done(&self) -> Option<StepOutcome> {
        if let OpResult::Done(done) = self { Some(*done) } else { None }
    }

    /// Marks the time of a take with the item that it was taken from.
    pub(crate) fn marked(self, shard: u32, shards: u32) -> OpResult {
        match self {
            OpResult::Done(StepOutcome::Taken(Taken { at, warnings })) if shards > 1 => {
                let of_max = u64::from(SHARDS_MAX);
                let at = Tick::from_micros(at.as_micros() / of_max * of_max + u64::from(shard));
                OpResult::Done(StepOutcome::Taken(Taken { at, warnings }))
            }
            result => result,
        }
    }
}
