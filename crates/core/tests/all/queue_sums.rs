//! The wait for a sum over a queue ends when the last demand of the queue passes, one after the
//! other.

use crate::oracle::history::History;
use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Core, costs, tick};
use crate::oracle::trace::{Plan, Trace};
use tollgate_core::Ready;

/// Returns when the last of `demands` demands of 1 passes that queue from `now` on.
fn last_passes(core: &mut Core, now: u64, demands: u64) -> Option<u64> {
    let mut then = now;
    for _ in 0..demands {
        while let Err(denial) = core.try_take(then, 1) {
            let Ready::At(ready) = denial.ready() else { return None };
            then = ready.as_micros();
        }
    }
    Some(then)
}

fn check(rng: &mut TestRng, spec: &Spec) -> Result<(), String> {
    let mut core = Core::new(spec.limit("x"), 0);
    let plan = Plan { steps: 20, overuse_max: 3, clock_back: false };
    let now = Trace::at(spec, plan, rng, 0).run(&mut core, &mut History::new(spec))?;
    let one = costs(&core.limits, 1);
    let (mut sum, demands) = (one.clone(), rng.from(1, 4 * spec.capacity()));
    (1..demands).for_each(|_| sum.add(&one));
    let reported = match core.bucket.ready(&core.limits, tick(now), &sum) {
        Ready::Now => Some(now),
        Ready::At(at) => Some(at.as_micros()),
        Ready::Unknown => None,
    };
    let passes = last_passes(&mut core, now, demands);
    if reported == passes {
        return Ok(());
    }
    Err(format!("{spec:?} at {now}: {demands} pass {passes:?}, reported {reported:?}"))
}

#[test]
fn the_wait_of_a_queue_before_a_bucket_is_that_of_its_last_demand() {
    for_seeds(500, |rng| {
        // If one tick may fill the bucket, what overflows depends on how the sum is made up.
        let spec = any::bucket(rng);
        let Spec::Bucket { algorithm, amount, capacity, period } = spec else { return Ok(()) };
        let spec = Spec::Bucket { algorithm, amount, capacity: capacity + 1, period: period.max(amount) };
        check(rng, &spec)
    });
}

#[test]
fn the_wait_of_a_queue_before_a_fixed_window_is_that_of_its_last_demand() {
    for_seeds(500, |rng| {
        let spec = any::fixed(rng);
        check(rng, &spec)
    });
}

#[test]
fn the_wait_of_a_queue_before_a_sliding_window_is_that_of_its_last_demand() {
    for_seeds(2_000, |rng| {
        let spec = Spec::Sliding { amount: rng.from(1, 12), period: rng.from(1, 5_000), step: Some(1) };
        check(rng, &spec)
    });
}

#[test]
fn the_wait_of_a_queue_before_a_quota_is_that_of_its_last_demand() {
    for_seeds(500, |rng| {
        let spec = if rng.one_in(2) { any::session(rng) } else { any::calendar(rng) };
        check(rng, &spec)
    });
}
