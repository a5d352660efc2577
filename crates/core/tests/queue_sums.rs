//! The wait for a sum over a queue is when the last demand of the queue passes, one after the other.

mod oracle;

use oracle::history::History;
use oracle::seed::{Dice, for_seeds};
use oracle::spec::{Spec, any};
use oracle::subject::{Core, costs, tick};
use oracle::trace::{Plan, Trace};
use tollgate_core::Ready;

/// When the last of `demands` demands of 1 passes that stand in a queue from `now` on.
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

fn check(dice: &mut Dice, spec: &Spec) -> Result<(), String> {
    let mut core = Core::new(spec.limit("x"), 0);
    let plan = Plan { steps: 20, overuse_max: 3, clock_back: false };
    let now = Trace::at(spec, plan, dice, 0).run(&mut core, &mut History::new(spec))?;
    let one = costs(&core.limits, 1);
    let (mut sum, demands) = (one.clone(), dice.from(1, 4 * spec.capacity()));
    (1..demands).for_each(|_| sum.add(&one));
    let told = match core.bucket.ready(&core.limits, tick(now), &sum) {
        Ready::Now => Some(now),
        Ready::At(at) => Some(at.as_micros()),
        Ready::Unknown => None,
    };
    let passes = last_passes(&mut core, now, demands);
    if told == passes {
        return Ok(());
    }
    Err(format!("{spec:?} at {now}: {demands} pass {passes:?}, told {told:?}"))
}

#[test]
fn a_queue_before_a_bucket_is_told_when_its_last_demand_passes() {
    for_seeds(500, |dice| {
        // Where a tick may fill the bucket, what flows over depends on how the sum is made up.
        let spec = any::bucket(dice);
        let Spec::Bucket { algorithm, amount, capacity, period } = spec else { return Ok(()) };
        let spec = Spec::Bucket { algorithm, amount, capacity: capacity + 1, period: period.max(amount) };
        check(dice, &spec)
    });
}

#[test]
fn a_queue_before_a_fixed_window_is_told_when_its_last_demand_passes() {
    for_seeds(500, |dice| {
        let spec = any::fixed(dice);
        check(dice, &spec)
    });
}

#[test]
fn a_queue_before_a_sliding_window_is_told_when_its_last_demand_passes() {
    for_seeds(2_000, |dice| {
        let spec = Spec::Sliding { amount: dice.from(1, 12), period: dice.from(1, 5_000), step: Some(1) };
        check(dice, &spec)
    });
}

#[test]
fn a_queue_before_a_quota_is_told_when_its_last_demand_passes() {
    for_seeds(500, |dice| {
        let spec = if dice.one_in(2) { any::session(dice) } else { any::calendar(dice) };
        check(dice, &spec)
    });
}
