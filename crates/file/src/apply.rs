//! Applying a call: everything is decided before anything is changed.

use tollgate_core::{Costs, Denial, Tick};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::usage::{Sums, Used};
use tollgate_store::{
    BucketRef, Freed, LivenessCache, Op, Step, StepOutcome, StoreError, Transaction, TxnOutcome,
    forgotten_keys, is_forgotten,
};

use crate::dedup;
use crate::error::Abort;
use crate::records;
use crate::rows::{self, FileRow};
use crate::sweep;
use crate::txn::{BucketId, WriteTxn};

/// What came of a call, and whether it was applied now or before.
pub(crate) struct DedupOutcome {
    pub(crate) applied: TxnOutcome,
    pub(crate) is_repeat: bool,
}

impl WriteTxn<'_> {
    /// Applies the call and makes the writes, or neither; once if the call has an id.
    pub(crate) fn apply(&mut self, call: &Transaction<'_>, writes: &[Write]) -> Result<DedupOutcome, Abort> {
        call.check(writes)?;
        if let Some(id) = call.id
            && let Some(done) = dedup::find(self.connection, id)?
        {
            return Ok(DedupOutcome { applied: TxnOutcome::Done(done), is_repeat: true });
        }
        let applied = self.apply_now(call, writes, self.clock.now())?;
        Ok(DedupOutcome { applied, is_repeat: false })
    }

    fn apply_now(
        &mut self,
        call: &Transaction<'_>,
        writes: &[Write],
        now: Tick,
    ) -> Result<TxnOutcome, Abort> {
        let (mut rows, mut census) = (Vec::with_capacity(call.steps.len()), LivenessCache::default());
        for (index, step) in call.steps.iter().enumerate() {
            let mut row = self.row_for(step, now)?;
            row.iter_mut().for_each(|row| row.kept.keep_living(now, &mut census));
            if step.takes().is_some() && row.as_ref().is_some_and(|row| row.kept.is_past(step.place.limits)) {
                return Ok(TxnOutcome::Stale(index));
            }
            rows.push(row);
        }
        let stamp = rows.iter().flatten().map(|row| row.kept.bucket.stamp()).max().unwrap_or_default();
        let later = self.clock.now_for(self.connection, stamp, now)?;
        if later != now {
            // What was decided above was so by a clock that is behind.
            return self.apply_now(call, writes, later);
        }
        if let Some(failed) = records::failing(self.connection, writes, now)? {
            return Err(RecordsError::Failed(failed).into());
        }
        let heeded: Vec<bool> = call
            .steps
            .iter()
            .zip(&rows)
            .map(|(step, row)| row.as_ref().is_some_and(|row| row.kept.accepts_limits_of(step)))
            .collect();
        for (step, row) in call.steps.iter().zip(&mut rows) {
            if let (Some(_), Some(row)) = (step.takes(), row) {
                row.kept.put_in_force(step.place.limits, now);
            }
        }
        if let Err(denials) = fit(call.steps, &mut rows, now) {
            let heeded = call.steps.iter().zip(rows).zip(heeded).filter(|(_, is_heeded)| *is_heeded);
            heeded.for_each(|((step, row), _)| self.set(step, row));
            return Ok(TxnOutcome::Denied(denials));
        }
        let steps = call.steps.iter().zip(&mut rows);
        let done: Vec<StepOutcome> =
            steps.map(|(step, row)| step.commit(row.as_mut().map(|row| &mut row.kept), now)).collect();
        let mut usage = Vec::new();
        if call.metered {
            self.meter(call.steps, &mut rows, &done, now, &mut usage)?;
        }
        records::make(self.connection, writes, now)?;
        records::make(self.connection, &usage, now)?;
        for (step, row) in call.steps.iter().zip(rows) {
            if row.is_some() {
                self.freed.extend(Freed::by(step));
            }
            self.set(step, row);
        }
        if let Some(id) = call.id {
            dedup::remember(self.connection, id, now, &done)?;
            self.sweep.calls_made += 1;
        }
        Ok(TxnOutcome::Done(done))
    }

    /// Puts the bucket of a step in place, if it has one.
    fn set(&mut self, step: &Step<'_>, row: Option<FileRow>) {
        if let Some(row) = row {
            self.put(address(step), row);
        }
    }

    /// The bucket of a step, or a fresh one for what charges one that is not there.
    fn row_for(&mut self, step: &Step<'_>, now: Tick) -> Result<Option<FileRow>, Abort> {
        if let Some(row) = self.row(&step.place)? {
            return Ok(Some(row.clone()));
        }
        if !step.charges() || step.takes().is_none() && !self.outlives_bucket(step, now)? {
            return Ok(None);
        }
        if rows::is_closed(self.connection, step.place.namespace)? {
            return Err(StoreError::NamespaceGone(step.place.namespace.into()).into());
        }
        Ok(Some(FileRow::fresh(step.place.limits)))
    }

    /// Whether a settlement counts though its bucket is not there: that was dropped because it was idle, not forgotten.
    fn outlives_bucket(&self, step: &Step<'_>, now: Tick) -> Result<bool, Abort> {
        let BucketRef { namespace, key, .. } = step.place;
        match (&step.op, key.pair()) {
            (Op::Settle(_), _) => Ok(true),
            (Op::SettleExisting(usage), Some((entity, resource)))
                if sweep::may_have_dropped(usage.at, now) =>
            {
                for key in forgotten_keys(namespace, entity, resource) {
                    let mark = records::get(self.connection, &key, now)?;
                    if mark.is_some_and(|mark| is_forgotten(&mark, usage.at)) {
                        return Ok(false);
                    }
                }
                Ok(!rows::is_closed(self.connection, namespace)?)
            }
            _ => Ok(false),
        }
    }

    /// Counts what the steps used. What is of another hour, or of a bucket that is gone, goes to `writes`.
    fn meter(
        &self,
        steps: &[Step<'_>],
        rows: &mut [Option<FileRow>],
        done: &[StepOutcome],
        now: Tick,
        writes: &mut Vec<Write>,
    ) -> Result<(), Abort> {
        let kept = self.usage_retention;
        for ((step, row), done) in steps.iter().zip(rows).zip(done) {
            let (at, used) = match (&step.op, done) {
                (Op::Take { costs, .. }, StepOutcome::Taken(taken)) => (taken.at, Used::Taken(costs)),
                (Op::Settle(usage) | Op::SettleExisting(usage), _) => (now, Used::Settled(usage)),
                _ => continue,
            };
            let BucketRef { namespace, limits, .. } = step.place;
            match row {
                Some(row) => used.count(&mut row.usage, &step.place, at, kept, writes),
                // It is gone because it was full, but what was counted of it has to be corrected.
                None if self.outlives_bucket(step, now)? && !rows::is_closed(self.connection, namespace)? => {
                    let mut sums = Some(Sums::new(limits, at, used.caller()));
                    used.count(&mut sums, &step.place, at, kept, writes);
                    writes.extend(sums.iter().flat_map(|sums| sums.writes_at(&step.place, kept)));
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn address(step: &Step<'_>) -> BucketId {
    (step.place.namespace.into(), step.place.key.clone())
}

/// Whether all takes fit, if need be without those who are seen to be gone.
fn fit(steps: &[Step<'_>], rows: &mut [Option<FileRow>], now: Tick) -> Result<(), Vec<Denial>> {
    if all_fit(steps, rows, now) || reap(steps, rows, now) && all_fit(steps, rows, now) {
        return Ok(());
    }
    Err(takes(steps, rows).map(|(costs, row)| row.kept.denial(now, costs)).collect())
}

fn all_fit(steps: &[Step<'_>], rows: &[Option<FileRow>], now: Tick) -> bool {
    takes(steps, rows).all(|(costs, row)| row.kept.fits(now, costs))
}

fn takes<'s>(
    steps: &'s [Step<'_>],
    rows: &'s [Option<FileRow>],
) -> impl Iterator<Item = (&'s Costs, &'s FileRow)> {
    steps.iter().zip(rows).filter_map(|(step, row)| Some((step.takes()?, row.as_ref()?)))
}

/// Drops what is held by processes that are gone, and says whether anything was.
fn reap(steps: &[Step<'_>], rows: &mut [Option<FileRow>], now: Tick) -> bool {
    let mut census = LivenessCache::default();
    let takes = steps.iter().zip(rows).filter(|(step, _)| step.takes().is_some());
    let held = takes.filter_map(|(_, row)| row.as_mut()).map(|row| &mut row.kept);
    // All of them: one that is dropped must not leave the others as they are.
    held.map(|kept| kept.drop_dead(now, &mut census)).filter(|dropped| *dropped).count() > 0
}
