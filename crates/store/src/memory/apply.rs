//! Transactions in memory: all steps are applied under the locks of all their cells, or none.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Tick;

use super::evaluate::{denials, stale};
use super::records::LockedRecords;
use super::{Afters, Memory};
use crate::locked::LockedBucket;
use crate::records::{RecordsError, Write};
use crate::sync::MutexGuard;
use crate::txn::used_by;
use crate::{
    BucketCell, BucketRef, Op, Step, StepOutcome, StoreError, Transaction, TxnOutcome, forgotten_keys,
    is_forgotten,
};

/// How often a call looks up its cells. It does so again only if one was forgotten between the lookup and the lock.
const LOOKUPS_MAX: usize = 100;

/// The cells of a call while they are locked, in the order of its steps. A step may have none.
pub(super) type LockedBuckets<'a> = [Option<MutexGuard<'a, LockedBucket>>];

impl Memory {
    /// Applies the call and makes the writes, or neither; once if the call has an id.
    pub(super) fn apply_once(
        &self,
        call: &Transaction<'_>,
        writes: &[Write],
    ) -> Result<TxnOutcome, RecordsError> {
        call.check(writes)?;
        let mut afters = Afters::new();
        let mut apply = || self.apply_or_leave_nothing(call, writes, &mut afters);
        let applied = match call.id {
            None => apply(),
            Some(id) => self.dedup().once(id, self.clock.now(), apply),
        };
        // From here on no lock is held, neither of a cell nor of the remembered calls.
        self.follow_up(afters);
        if matches!(applied, Ok(TxnOutcome::Done(_))) {
            self.wait_queues.notify_freed(call);
        }
        applied
    }

    /// Applies the call; one that is denied or fails leaves nothing behind, not even an empty bucket.
    fn apply_or_leave_nothing(
        &self,
        call: &Transaction<'_>,
        writes: &[Write],
        afters: &mut Afters,
    ) -> Result<TxnOutcome, RecordsError> {
        let space = |step: &Step<'_>| self.namespace(step.place.namespace);
        let is_new = |step: &&Step<'_>| step.takes().is_some() && space(step).find(step.place.key).is_none();
        let new: Vec<&Step<'_>> = call.steps.iter().filter(is_new).collect();
        let applied = self.apply_to_cells(call, writes, afters);
        if !matches!(applied, Ok(TxnOutcome::Done(_))) {
            new.into_iter().for_each(|step| space(step).drop_unused(step.place.key, self.clock.now()));
        }
        applied
    }

    fn apply_to_cells(
        &self,
        call: &Transaction<'_>,
        writes: &[Write],
        afters: &mut Afters,
    ) -> Result<TxnOutcome, RecordsError> {
        for _ in 0..LOOKUPS_MAX {
            let cells = call.steps.iter().map(|step| self.cell_for(step)).collect::<Result<Vec<_>, _>>()?;
            let order = lock_order(&cells);
            // Before the cells and never after one, so that no two calls deadlock.
            let records = (!writes.is_empty()).then(|| self.records.lock(self.clock.now()));
            let mut locked: Vec<_> = cells.iter().map(|_| None).collect();
            for index in order {
                locked[index] = cells[index].as_ref().map(|cell| cell.lock());
            }
            if locked.iter().flatten().any(|inner| inner.is_removed()) {
                continue;
            }
            let now = self.clock.now();
            locked.iter_mut().flatten().for_each(|inner| inner.take_back_for_newcomer(now));
            let applied = apply_locked(call.steps, &mut locked, records, writes, now)?;
            // Also if it was denied: the limits it came with may let others pass.
            for (cell, inner) in cells.iter().zip(&mut locked) {
                if let (Some(cell), Some(inner)) = (cell, inner)
                    && inner.waiting.is_some()
                {
                    afters.push((Arc::clone(cell), inner.serve(now)));
                }
            }
            drop(locked);
            if let (TxnOutcome::Done(done), true) = (&applied, call.metered) {
                self.count(call.steps, &cells, done, now);
            }
            return Ok(applied);
        }
        Err(forgotten_too_fast().into())
    }

    /// Returns the cell of a step. Only a step that charges creates one: a refund or a renewal must not.
    fn cell_for(&self, step: &Step<'_>) -> Result<Option<Arc<BucketCell>>, StoreError> {
        if step.creates() {
            return self.cell(&step.place).map(Some);
        }
        match self.namespace(step.place.namespace).find(step.place.key) {
            None if step.charges() && self.outlives_cell(step) => self.cell(&step.place).map(Some),
            found => Ok(found),
        }
    }

    /// Returns whether a settlement counts although its cell does not exist: it was dropped because it was idle, not
    /// forgotten.
    fn outlives_cell(&self, step: &Step<'_>) -> bool {
        let BucketRef { namespace, key, .. } = step.place;
        match (&step.op, key.pair()) {
            (Op::Settle(_), _) => true,
            (Op::SettleExisting(usage), Some((entity, resource)))
                if self.namespace(namespace).may_have_dropped(key, usage.at) =>
            {
                let records = self.records.lock(self.clock.now());
                let marks = forgotten_keys(namespace, entity, resource);
                let mut marks = marks.iter().filter_map(|key| records.get(key));
                !marks.any(|mark| is_forgotten(&mark, usage.at)) && !self.namespace(namespace).is_closed()
            }
            _ => false,
        }
    }

    /// Counts what the steps used. No lock is held: earlier sums may have to be written to the records first.
    fn count(&self, steps: &[Step<'_>], cells: &[Option<Arc<BucketCell>>], done: &[StepOutcome], now: Tick) {
        for ((step, cell), done) in steps.iter().zip(cells).zip(done) {
            let BucketRef { namespace, key, limits } = step.place;
            let Some((at, used)) = used_by(step, done, now) else { continue };
            match cell {
                Some(cell) => {
                    self.namespace(namespace).count(cell, at, limits, used.caller(), |sums| used.add(sums));
                }
                None if self.outlives_cell(step) => {
                    self.namespace(namespace).count_without_cell(key, at, limits, &used);
                }
                None => {}
            }
        }
    }
}

fn forgotten_too_fast() -> StoreError {
    StoreError::Unavailable(Duration::ZERO, "its buckets are forgotten faster than they are found".into())
}

/// Returns in which order the cells are locked, so that no two calls deadlock.
fn lock_order(cells: &[Option<Arc<BucketCell>>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells.len()).filter(|index| cells[*index].is_some()).collect();
    order.sort_by_key(|index| cells[*index].as_ref().map(|cell| cell.lock_order()));
    order
}

fn apply_locked(
    steps: &[Step<'_>],
    locked: &mut LockedBuckets<'_>,
    records: Option<LockedRecords<'_>>,
    writes: &[Write],
    now: Tick,
) -> Result<TxnOutcome, RecordsError> {
    if let Some(stale) = stale(steps, locked) {
        return Ok(TxnOutcome::Stale(stale));
    }
    records.iter().try_for_each(|records| records.test(writes))?;
    let denials = denials(steps, locked, now);
    if !denials.is_empty() {
        for (step, inner) in steps.iter().zip(locked) {
            if let (Some(_), Some(inner)) = (step.takes(), inner) {
                inner.adopt_denied_limits(now, step.place.limits);
            }
        }
        return Ok(TxnOutcome::Denied(denials));
    }
    records.into_iter().for_each(|mut records| records.make(writes));
    let done = steps.iter().zip(locked).map(|(step, inner)| commit(step, inner.as_deref_mut(), now));
    Ok(TxnOutcome::Done(done.collect()))
}

fn commit(step: &Step<'_>, locked: Option<&mut LockedBucket>, now: Tick) -> StepOutcome {
    let target = locked.map(|locked| {
        if step.takes().is_some() {
            locked.put_in_force(now, step.place.limits);
        }
        (&locked.limits, &mut locked.bucket)
    });
    step.commit_to(target, now)
}
