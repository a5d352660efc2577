//! Applying a transaction: load the buckets, decide, then deny or commit.

use tollgate_core::{Costs, Tick};

use super::bucket_txn::{BucketTxn, MeteredBucket, TxnBucket};
use crate::records::{RecordsError, Write};
use crate::usage::{Sums, Used};
use crate::{
    BucketRef, LivenessCache, Op, Step, StepOutcome, StoreError, StoredBucket, Transaction, TxnOutcome,
    forgotten_keys, is_forgotten,
};

/// The outcome of a transaction, and whether it was applied before.
///
/// # Examples
///
/// ```
/// use tollgate_store::txn::Applied;
/// use tollgate_store::{StepOutcome, TxnOutcome};
///
/// /// Returns true if waiters have to be notified of what the transaction has freed.
/// fn may_free(applied: &Applied) -> bool {
///     !applied.is_repeat && matches!(applied.outcome, TxnOutcome::Done(_))
/// }
///
/// let outcome = TxnOutcome::Done(vec![StepOutcome::Settled]);
/// assert!(may_free(&Applied { outcome: outcome.clone(), is_repeat: false }));
/// assert!(!may_free(&Applied { outcome, is_repeat: true }), "they were notified before");
/// ```
#[derive(Debug)]
pub struct Applied {
    /// The outcome.
    pub outcome: TxnOutcome,
    /// True if a transaction with the same id was applied before, and this is its outcome.
    pub is_repeat: bool,
}

/// Applies all steps and makes all writes, or none of them; at most once if the transaction has an id.
///
/// If a take is denied, nothing is taken; limits that came with it may be put in force all the same.
///
/// # Errors
///
/// [`RecordsError::Failed`] if the test of a write fails, [`StoreError::NamespaceGone`] if a bucket would be made in a closed
/// namespace, and what the store itself meets.
#[inline]
pub fn apply<T: BucketTxn>(
    txn: &mut T,
    call: &Transaction<'_>,
    writes: &[Write],
) -> Result<Applied, T::Error> {
    if let Some(id) = call.id
        && let Some(done) = txn.find_outcome(id)?
    {
        return Ok(Applied { outcome: TxnOutcome::Done(done), is_repeat: true });
    }
    let now = txn.now(call.steps)?;
    let outcome = decide(txn, call, writes, now)?;
    Ok(Applied { outcome, is_repeat: false })
}

type TxnBuckets<T> = [Option<TxnBucket<<T as BucketTxn>::Handle>>];

/// Decides with the buckets of the steps on the stack if there is one, as in nearly every call.
#[inline]
fn decide<T: BucketTxn>(
    txn: &mut T,
    call: &Transaction<'_>,
    writes: &[Write],
    now: Tick,
) -> Result<TxnOutcome, T::Error> {
    if let [_] = call.steps {
        return decide_in(&mut [None], txn, call, writes, now);
    }
    let mut buckets: Vec<_> = call.steps.iter().map(|_| None).collect();
    decide_in(&mut buckets, txn, call, writes, now)
}

fn decide_in<T: BucketTxn>(
    buckets: &mut TxnBuckets<T>,
    txn: &mut T,
    call: &Transaction<'_>,
    writes: &[Write],
    now: Tick,
) -> Result<TxnOutcome, T::Error> {
    let mut liveness = LivenessCache::default();
    for (index, (step, bucket)) in call.steps.iter().zip(&mut *buckets).enumerate() {
        *bucket = load_or_make(txn, step, now)?;
        if let Some(TxnBucket { metered: MeteredBucket { stored, .. }, .. }) = bucket {
            if T::SEES_PROCESSES {
                stored.keep_living(now, &mut liveness);
            }
            if step.takes().is_some() && stored.is_past(step.place.limits) {
                return Ok(TxnOutcome::Stale(index));
            }
        }
    }
    if !writes.is_empty()
        && let Some(failed) = txn.first_failing(writes, now)?
    {
        return Err(RecordsError::Failed(failed).into());
    }
    put_limits_in_force(txn, call.steps, buckets, now);
    if txn.is_held_back() || !fit::<T>(call.steps, buckets, now) {
        return deny(txn, call.steps, buckets, now);
    }
    commit(txn, call, writes, buckets, now)
}

/// Returns the bucket of a step, or a fresh one if the step charges and none exists.
#[inline]
fn load_or_make<T: BucketTxn>(
    txn: &mut T,
    step: &Step<'_>,
    now: Tick,
) -> Result<Option<TxnBucket<T::Handle>>, T::Error> {
    let BucketRef { namespace, limits, .. } = step.place;
    if let Some(bucket) = txn.load(&step.place)? {
        return Ok(Some(bucket));
    }
    if !step.charges() || step.takes().is_none() && !counts_without_bucket(txn, step, now)? {
        return Ok(None);
    }
    if txn.is_closed(namespace)? {
        return Err(StoreError::NamespaceGone(namespace.into()).into());
    }
    Ok(Some(TxnBucket::new(MeteredBucket::fresh(limits), T::Handle::default())))
}

/// Returns whether a settlement counts although its bucket does not exist: the store dropped it because it was idle, and no
/// caller has [forgotten](crate::Backend::forget) it.
fn counts_without_bucket<T: BucketTxn>(txn: &mut T, step: &Step<'_>, now: Tick) -> Result<bool, T::Error> {
    let BucketRef { namespace, key, .. } = step.place;
    match (&step.op, key.pair()) {
        (Op::Settle(_), _) => Ok(true),
        (Op::SettleExisting(usage), Some((entity, resource))) if txn.may_have_dropped(usage.at, now) => {
            for key in forgotten_keys(namespace, entity, resource) {
                if txn.record(&key, now)?.is_some_and(|mark| is_forgotten(&mark, usage.at)) {
                    return Ok(false);
                }
            }
            Ok(!txn.is_closed(namespace)?)
        }
        _ => Ok(false),
    }
}

fn put_limits_in_force<T: BucketTxn>(
    txn: &T,
    steps: &[Step<'_>],
    buckets: &mut [Option<TxnBucket<T::Handle>>],
    now: Tick,
) {
    for (step, bucket) in steps.iter().zip(buckets) {
        if let (Some(_), Some(bucket)) = (step.takes(), bucket) {
            bucket.keeps_limits = bucket.metered.stored.accepts_limits_of(step);
            bucket.metered.stored.put_in_force(step.place.limits, now);
            txn.limits_changed(&step.place, bucket, now);
        }
    }
}

/// Returns whether all takes fit, if need be once the holders are dropped whose processes have ended.
fn fit<T: BucketTxn>(steps: &[Step<'_>], buckets: &mut [Option<TxnBucket<T::Handle>>], now: Tick) -> bool {
    all_fit(steps, buckets, now)
        || T::SEES_PROCESSES && drop_dead(steps, buckets, now) && all_fit(steps, buckets, now)
}

fn all_fit<H>(steps: &[Step<'_>], buckets: &[Option<TxnBucket<H>>], now: Tick) -> bool {
    takes(steps, buckets).all(|(costs, stored)| stored.fits(now, costs))
}

fn takes<'s, H>(
    steps: &'s [Step<'_>],
    buckets: &'s [Option<TxnBucket<H>>],
) -> impl Iterator<Item = (&'s Costs, &'s StoredBucket)> {
    let steps = steps.iter().zip(buckets);
    steps.filter_map(|(step, bucket)| Some((step.takes()?, &bucket.as_ref()?.metered.stored)))
}

/// Drops the holders whose processes have ended from every bucket that is taken from, and returns whether there were any.
fn drop_dead<H>(steps: &[Step<'_>], buckets: &mut [Option<TxnBucket<H>>], now: Tick) -> bool {
    let mut liveness = LivenessCache::default();
    let mut is_any_dropped = false;
    for (step, bucket) in steps.iter().zip(buckets) {
        if let (Some(_), Some(bucket)) = (step.takes(), bucket) {
            is_any_dropped |= bucket.metered.stored.drop_dead(now, &mut liveness);
        }
    }
    is_any_dropped
}

fn deny<T: BucketTxn>(
    txn: &mut T,
    steps: &[Step<'_>],
    buckets: &mut TxnBuckets<T>,
    now: Tick,
) -> Result<TxnOutcome, T::Error> {
    let denials = takes(steps, buckets).map(|(costs, stored)| stored.denial(now, costs)).collect();
    for (step, bucket) in steps.iter().zip(buckets) {
        if let Some(bucket) = bucket.take_if(|bucket| bucket.keeps_limits) {
            txn.put(&step.place, bucket, now)?;
        }
    }
    Ok(TxnOutcome::Denied(denials))
}

fn commit<T: BucketTxn>(
    txn: &mut T,
    call: &Transaction<'_>,
    writes: &[Write],
    buckets: &mut TxnBuckets<T>,
    now: Tick,
) -> Result<TxnOutcome, T::Error> {
    let commit = |(step, bucket): (&Step<'_>, &mut Option<TxnBucket<T::Handle>>)| {
        step.commit(bucket.as_mut().map(|bucket| &mut bucket.metered.stored), now)
    };
    let done: Vec<StepOutcome> = call.steps.iter().zip(&mut *buckets).map(commit).collect();
    let mut usage = Vec::new();
    if call.metered {
        meter(txn, call.steps, buckets, &done, now, &mut usage)?;
    }
    txn.write_records(writes, now)?;
    txn.write_usage(&usage, now)?;
    for (step, bucket) in call.steps.iter().zip(buckets) {
        if let Some(bucket) = bucket.take() {
            txn.put(&step.place, bucket, now)?;
        }
    }
    if let Some(id) = call.id {
        txn.remember_outcome(id, &done, now)?;
    }
    Ok(TxnOutcome::Done(done))
}

/// Counts what the steps used. What is of another hour, or of a bucket that does not exist, goes to `writes`.
fn meter<T: BucketTxn>(
    txn: &mut T,
    steps: &[Step<'_>],
    buckets: &mut [Option<TxnBucket<T::Handle>>],
    done: &[StepOutcome],
    now: Tick,
    writes: &mut Vec<Write>,
) -> Result<(), T::Error> {
    for (index, ((step, bucket), done)) in steps.iter().zip(buckets).zip(done).enumerate() {
        let Some((at, used)) = used_by(step, done, now) else { continue };
        // A bucket that was dropped was full, but what was counted of it has to be corrected.
        let is_counted = bucket.is_some()
            || counts_without_bucket(txn, step, now)? && !txn.is_closed(step.place.namespace)?;
        if !is_counted {
            continue;
        }
        let used = txn.usage_override(index).unwrap_or(used);
        match bucket {
            Some(bucket) => txn.count(&used, &mut bucket.metered, &step.place, at, writes),
            None => {
                let mut sums = Sums::new(step.place.limits, at, used.caller());
                used.add(&mut sums);
                writes.extend(sums.writes_at(&step.place, txn.usage_retention()));
            }
        }
    }
    Ok(())
}

/// Returns what counts as usage of a step that was applied at `now`, and when it does.
#[inline]
pub(crate) fn used_by<'s>(step: &'s Step<'_>, done: &StepOutcome, now: Tick) -> Option<(Tick, Used<'s>)> {
    match (&step.op, done) {
        (Op::Take { costs, .. }, StepOutcome::Taken(taken)) => Some((taken.at, Used::Taken(costs))),
        (Op::Settle(usage) | Op::SettleExisting(usage), _) => Some((now, Used::Settled(usage))),
        _ => None,
    }
}
