//! Evaluates takes without changing anything.

use tollgate_core::{Bucket, Costs, Denial, Limits, Tick};

use super::Memory;
use super::apply::LockedBuckets;
use crate::locked::LockedBucket;
use crate::{BucketRef, Priority, Step};

impl Memory {
    /// Returns the denial of every take, each evaluated by itself.
    pub(super) fn ask_each(&self, steps: &[Step<'_>]) -> Vec<Denial> {
        let now = self.clock.now();
        let ask = |(costs, place): (&Costs, &BucketRef<'_>)| match self
            .namespace(place.namespace)
            .find(place.key)
        {
            Some(cell) => denial(&cell.lock(), place.limits, now, costs),
            None => Bucket::fresh(place.limits, Tick::ZERO).denial(place.limits, now, costs),
        };
        steps.iter().filter_map(|step| Some((step.takes()?, &step.place))).map(ask).collect()
    }
}

/// Returns the index of the first take whose limits are older than those of its bucket.
pub(super) fn stale(steps: &[Step<'_>], locked: &LockedBuckets<'_>) -> Option<usize> {
    let mut steps = steps.iter().zip(locked);
    steps.position(|(step, inner)| {
        step.takes().is_some() && inner.as_ref().is_some_and(|inner| inner.is_past(step.place.limits))
    })
}

/// Returns the denial of every take, if any take is denied; otherwise nothing.
pub(super) fn denials(steps: &[Step<'_>], locked: &LockedBuckets<'_>, now: Tick) -> Vec<Denial> {
    let takes = || {
        steps.iter().zip(locked).filter_map(|(step, inner)| Some((step.takes()?, step, inner.as_deref()?)))
    };
    let fits = |(costs, step, inner): (&Costs, &Step<'_>, &LockedBucket)| {
        let open = inner.is_open_under(step.place.limits, now, costs, Priority::default());
        let fits = |bucket: &Bucket, limits: &Limits| bucket.fits(limits, now, costs);
        open && under(inner, step.place.limits, now, fits)
    };
    if takes().all(fits) {
        return Vec::new();
    }
    takes().map(|(costs, step, inner)| denial(inner, step.place.limits, now, costs)).collect()
}

/// Returns the denial of a take, behind the waiters ahead of it. `costs` are counted in `limits`.
fn denial(inner: &LockedBucket, counted_in: &Limits, now: Tick, costs: &Costs) -> Denial {
    under(inner, counted_in, now, |bucket, limits| {
        let moved = (!limits.same_layout(counted_in)).then(|| costs.remapped(counted_in, limits));
        let costs = moved.as_ref().unwrap_or(costs);
        let denial = bucket.denial(limits, now, costs);
        if inner.waiting.is_none() {
            return denial;
        }
        denial.not_before(inner.ready_under(limits, bucket, now, costs, Priority::default()))
    })
}

/// Calls `ask` with the bucket as it would be under `limits`, or under those in force if they are later. Changes
/// nothing.
pub(super) fn under<R>(
    inner: &LockedBucket,
    limits: &Limits,
    now: Tick,
    ask: impl FnOnce(&Bucket, &Limits) -> R,
) -> R {
    if inner.is_under(limits) || inner.is_past(limits) {
        return ask(&inner.bucket, &inner.limits);
    }
    let mut bucket = inner.bucket.clone();
    bucket.adopt(&inner.limits, limits, now);
    ask(&bucket, limits)
}
