//! Clocks that step back or forward: nothing is minted, and nothing waits forever.

use crate::oracle::Settled;
use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Answer, Core, Subject};
use tollgate_core::Ready;

/// Returns a bucket after some use, and the instant of the last use.
fn used(rng: &mut TestRng, spec: &Spec) -> (Core, u64) {
    let mut now = 1_000_000_000_000;
    let mut core = Core::new(spec.limit("x"), now);
    for _ in 0..rng.from(1, 6) {
        now += rng.from(0, spec.time_scale());
        let left = u64::try_from(core.peek(now).available).unwrap_or(0);
        let cost = rng.from(0, left.min(spec.capacity()));
        let at = core.try_take(now, cost).expect("there is enough left");
        if rng.one_in(3) && !matches!(spec, Spec::Gauge { .. }) {
            core.settle(now, &Settled { at, reserved: cost, used: rng.from(0, 5 * cost), holder: None });
        }
    }
    (core, now)
}

#[test]
fn a_clock_that_steps_back_is_answered_as_of_the_last_use() {
    for_seeds(2_000, |rng| {
        let spec = any::kind(rng);
        let (core, stamp) = used(rng, &spec);
        for _ in 0..10 {
            let back = stamp - rng.from(0, 5 * spec.time_scale()).min(stamp);
            assert_eq!(core.peek(back), core.peek(stamp), "{spec:?}");
            let cost = rng.from(0, spec.capacity());
            let (mut early, mut late) = (core.clone(), core.clone());
            assert_eq!(early.take(back, cost, None), late.take(stamp, cost, None), "{spec:?}");
            assert_eq!(early.bucket, late.bucket);
        }
        Ok(())
    });
}

#[test]
fn a_clock_that_went_back_and_forth_leaves_no_trace() {
    for_seeds(2_000, |rng| {
        let spec = any::kind(rng);
        let (mut unsteady, mut now) = used(rng, &spec);
        let mut steady = unsteady.clone();
        for _ in 0..20 {
            now += rng.from(0, spec.time_scale());
            let (cost, back) = (rng.from(0, spec.capacity()), rng.from(0, 3 * spec.time_scale()));
            // A denial while the clock is behind must not affect later answers.
            let denied = unsteady.clone().take(now - back, cost, None);
            if matches!(denied, Answer::Denied { .. }) {
                unsteady.take(now - back, cost, None);
            }
            unsteady.peek(now - back);
            assert_eq!(unsteady.take(now, cost, None), steady.take(now, cost, None), "{spec:?}");
        }
        Ok(())
    });
}

#[test]
fn a_clock_that_stepped_back_gets_a_tight_wait() {
    for_seeds(2_000, |rng| {
        let spec = any::kind(rng);
        let (mut core, stamp) = used(rng, &spec);
        let back = stamp - rng.from(0, 3 * spec.time_scale()).min(stamp);
        let cost = spec.capacity();
        if let Answer::Denied { ready: Ready::At(ready), .. } = core.take(back, cost, None) {
            let ready = ready.as_micros();
            assert!(ready > stamp && ready > back);
            assert!(core.clone().try_take(ready - 1, cost).is_err(), "{spec:?}");
            assert!(core.try_take(ready, cost).is_ok(), "{spec:?}");
        }
        Ok(())
    });
}

#[test]
fn a_clock_far_ahead_fills_the_limit_once() {
    for_seeds(2_000, |rng| {
        let spec = TIMED[rng.from(0, 3) as usize](rng);
        let (mut core, now) = used(rng, &spec);
        let ahead = now + 10_000 * spec.time_scale();
        assert_eq!(core.peek(ahead).available, spec.capacity() as i64, "{spec:?}");
        core.try_take(ahead, spec.capacity()).map_err(|denial| denial.to_string())?;
        // At the right time nothing is left, and the wait is known.
        assert_eq!(core.peek(now).available, 0, "{spec:?}");
        let denial = core.try_take(now, 1).expect_err("everything was taken");
        let Ready::At(ready) = denial.ready() else { return Err(format!("{spec:?} is stuck")) };
        core.try_take(ready.as_micros(), 1).map_err(|denial| denial.to_string())?;
        Ok(())
    });
}

const TIMED: [fn(&mut TestRng) -> Spec; 4] = [any::bucket, any::fixed, any::sliding, any::session];

#[test]
fn two_clients_five_minutes_apart_share_one_rate() {
    let algorithm = tollgate_core::Algorithm::TokenBucket;
    let spec = Spec::Bucket { algorithm, amount: 100, capacity: 100, period: 60_000_000 };
    let (start, skew) = (1_000_000_000, 300_000_000);
    let mut core = Core::new(spec.limit("x"), start);
    let mut admitted = 0;
    for tenth in 0..6_000 {
        let now = start + tenth * 100_000;
        for clock in [now, now + skew] {
            admitted += u64::from(core.try_take(clock, 1).is_ok());
        }
    }
    // The clock that is ahead fills the bucket once; from then on the bucket uses its time for
    // both.
    assert!(admitted <= 100 + 100 + 1_000, "{admitted}");
    assert!(admitted >= 1_000, "{admitted}");
}
