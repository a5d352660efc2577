//! Applying a call: everything is decided before anything is changed.

use tollgate_core::{Costs, Denial, Tick};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::usage::{Sums, Used};
use tollgate_store::{
    BucketRef, LivenessCache, Op, Step, StepOutcome, StoreError, Transaction, TxnOutcome, forgotten_keys,
    is_forgotten,
};

use crate::error::TxnAbort;
use crate::key::{KeyKind, MapKey};
use crate::layout::REVISION;
use crate::limits::ShmLimitsCache;
use crate::row::{RowParts, ShmRow, bucket_key};
use crate::sweep;
use crate::tx::Tx;

/// The bucket of a step while it is worked on.
struct HeldBucket {
    /// Where it is; `None` if it is new.
    entry: Option<u64>,
    /// `None` if there is no bucket and the step does not make one.
    row: Option<ShmRow>,
    /// Whether the limits of its step are put in force though the call is denied.
    is_heeded: bool,
}

/// Applies the call and makes the writes, or neither; once if the call has an id.
pub(crate) fn apply(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    call: &Transaction<'_>,
    writes: &[Write],
    now: Tick,
) -> Result<TxnOutcome, TxnAbort> {
    if let Some(id) = call.id
        && let Some(done) = tx.find_call(id)?
    {
        return Ok(TxnOutcome::Done(done));
    }
    let wanted = if call.metered { RowParts::BucketAndUsage } else { RowParts::Bucket };
    let (mut held, mut census) = (Vec::with_capacity(call.steps.len()), LivenessCache::default());
    for (index, step) in call.steps.iter().enumerate() {
        let mut bucket = hold(tx, known, step, wanted, now)?;
        bucket.row.iter_mut().for_each(|row| row.kept.keep_living(now, &mut census));
        if step.takes().is_some()
            && bucket.row.as_ref().is_some_and(|row| row.kept.is_past(step.place.limits))
        {
            return Ok(TxnOutcome::Stale(index));
        }
        held.push(bucket);
    }
    if let Some(failed) = tx.failing(writes, now)? {
        return Err(RecordsError::Failed(failed).into());
    }
    for (step, held) in call.steps.iter().zip(&mut held) {
        if let (Some(_), Some(row)) = (step.takes(), &mut held.row) {
            held.is_heeded = held.entry.is_some() && row.kept.accepts_limits_of(step);
            row.kept.put_in_force(step.place.limits, now);
        }
    }
    if let Err(denials) = fit(call.steps, &mut held, now) {
        for (step, held) in call.steps.iter().zip(held).filter(|(_, held)| held.is_heeded) {
            put(tx, known, step, held, wanted)?;
        }
        return Ok(TxnOutcome::Denied(denials));
    }
    let steps = call.steps.iter().zip(&mut held);
    let done: Vec<StepOutcome> =
        steps.map(|(step, held)| step.commit(held.row.as_mut().map(|row| &mut row.kept), now)).collect();
    let mut usage = Vec::new();
    if call.metered {
        meter(tx, call.steps, &mut held, &done, now, &mut usage)?;
    }
    if !writes.is_empty() {
        // Before anything that others could read, so that who sees the old number sees no new record.
        tx.count_up(REVISION)?;
        tx.write_records(writes, now)?;
    }
    tx.write_records(&usage, now)?;
    let mut made = 0;
    for (step, held) in call.steps.iter().zip(held) {
        made += usize::from(held.entry.is_none() && held.row.is_some());
        put(tx, known, step, held, wanted)?;
    }
    if let Some(id) = call.id {
        tx.remember_call(id, now, &done)?;
    }
    sweep::sweep(tx, known, made, now)?;
    Ok(TxnOutcome::Done(done))
}

/// Whether no bucket is made in a namespace any more.
pub(crate) fn is_closed(tx: &Tx<'_>, namespace: &str) -> Result<bool, TxnAbort> {
    Ok(tx.find(&closed_key(namespace))?.is_some())
}

/// Lets no bucket be made in a namespace any more.
pub(crate) fn close(tx: &mut Tx<'_>, namespace: &str) -> Result<(), TxnAbort> {
    if !is_closed(tx, namespace)? {
        tx.insert(&closed_key(namespace), 0)?;
    }
    Ok(())
}

fn closed_key(namespace: &str) -> MapKey {
    MapKey::new(KeyKind::Closed).raw(namespace.as_bytes())
}

/// Whether a settlement counts though its bucket is not there: that was dropped because it was idle, not forgotten.
fn outlives_bucket(tx: &Tx<'_>, step: &Step<'_>, now: Tick) -> Result<bool, TxnAbort> {
    let BucketRef { namespace, key, .. } = step.place;
    match (&step.op, key.pair()) {
        (Op::Settle(_), _) => Ok(true),
        (Op::SettleExisting(usage), Some((entity, resource))) if sweep::may_have_dropped(usage.at, now) => {
            for key in forgotten_keys(namespace, entity, resource) {
                if tx.record(&key, now)?.is_some_and(|mark| is_forgotten(&mark, usage.at)) {
                    return Ok(false);
                }
            }
            Ok(!is_closed(tx, namespace)?)
        }
        _ => Ok(false),
    }
}

/// The bucket of a step, or a fresh one for what charges one that is not there.
#[inline]
fn hold(
    tx: &Tx<'_>,
    known: &mut ShmLimitsCache,
    step: &Step<'_>,
    wanted: RowParts,
    now: Tick,
) -> Result<HeldBucket, TxnAbort> {
    let BucketRef { namespace, key, limits } = step.place;
    let key = bucket_key(namespace, key);
    if let Some(entry) = tx.find_entry(&key, tx.hash_of(&key))? {
        let row = ShmRow::read(tx, known, entry, Some(limits), wanted)?;
        return Ok(HeldBucket { entry: Some(entry), row: Some(row), is_heeded: false });
    }
    if !step.charges() || step.takes().is_none() && !outlives_bucket(tx, step, now)? {
        return Ok(HeldBucket { entry: None, row: None, is_heeded: false });
    }
    if is_closed(tx, namespace)? {
        return Err(StoreError::NamespaceGone(namespace.into()).into());
    }
    Ok(HeldBucket { entry: None, row: Some(ShmRow::fresh(limits)), is_heeded: false })
}

/// Puts the bucket of a step in place, if it has one.
#[inline]
fn put(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    step: &Step<'_>,
    held: HeldBucket,
    wanted: RowParts,
) -> Result<(), TxnAbort> {
    match held {
        HeldBucket { row: None, .. } => Ok(()),
        HeldBucket { entry: Some(entry), row: Some(row), .. } => row.write(tx, known, entry, wanted),
        HeldBucket { entry: None, row: Some(row), .. } => {
            row.make(tx, known, (step.place.namespace, step.place.key))
        }
    }
}

/// Counts what the steps used. What is of another hour, or of a bucket that is gone, goes to `writes`.
fn meter(
    tx: &Tx<'_>,
    steps: &[Step<'_>],
    held: &mut [HeldBucket],
    done: &[StepOutcome],
    now: Tick,
    writes: &mut Vec<Write>,
) -> Result<(), TxnAbort> {
    let kept = &tx.arena.usage_retention;
    for ((step, held), done) in steps.iter().zip(held).zip(done) {
        let (at, used) = match (&step.op, done) {
            (Op::Take { costs, .. }, StepOutcome::Taken(taken)) => (taken.at, Used::Taken(costs)),
            (Op::Settle(usage) | Op::SettleExisting(usage), _) => (now, Used::Settled(usage)),
            _ => continue,
        };
        let BucketRef { namespace, limits, .. } = step.place;
        match &mut held.row {
            Some(row) => used.count(&mut row.usage, &step.place, at, kept, writes),
            // It is gone because it was full, but what was counted of it has to be corrected.
            None if outlives_bucket(tx, step, now)? && !is_closed(tx, namespace)? => {
                let mut sums = Some(Sums::new(limits, at, used.caller()));
                used.count(&mut sums, &step.place, at, kept, writes);
                writes.extend(sums.iter().flat_map(|sums| sums.writes_at(&step.place, kept)));
            }
            None => {}
        }
    }
    Ok(())
}

/// Whether all takes fit, if need be without those who are seen to be gone.
fn fit(steps: &[Step<'_>], held: &mut [HeldBucket], now: Tick) -> Result<(), Vec<Denial>> {
    if all_fit(steps, held, now) || reap(steps, held, now) && all_fit(steps, held, now) {
        return Ok(());
    }
    Err(takes(steps, held).map(|(costs, row)| row.kept.denial(now, costs)).collect())
}

fn all_fit(steps: &[Step<'_>], held: &[HeldBucket], now: Tick) -> bool {
    takes(steps, held).all(|(costs, row)| row.kept.fits(now, costs))
}

fn takes<'s>(steps: &'s [Step<'_>], held: &'s [HeldBucket]) -> impl Iterator<Item = (&'s Costs, &'s ShmRow)> {
    steps.iter().zip(held).filter_map(|(step, held)| Some((step.takes()?, held.row.as_ref()?)))
}

/// Drops what is held by processes that are gone, and says whether anything was.
fn reap(steps: &[Step<'_>], held: &mut [HeldBucket], now: Tick) -> bool {
    let mut census = LivenessCache::default();
    let takes = steps.iter().zip(held).filter(|(step, _)| step.takes().is_some());
    let kept = takes.filter_map(|(_, held)| held.row.as_mut()).map(|row| &mut row.kept);
    // All of them: one that is dropped must not leave the others as they are.
    kept.map(|kept| kept.drop_dead(now, &mut census)).filter(|dropped| *dropped).count() > 0
}
