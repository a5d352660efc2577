//! A clock that steps back or forward: nothing is minted, nothing is stuck.

mod oracle;

use oracle::Settled;
use oracle::seed::{Dice, for_seeds};
use oracle::spec::{Spec, any};
use oracle::subject::{Answer, Core, Subject};
use tollgate_core::Ready;

/// A bucket with something used, and when that was.
fn used(dice: &mut Dice, spec: &Spec) -> (Core, u64) {
    let mut now = 1_000_000_000_000;
    let mut core = Core::new(spec.limit("x"), now);
    for _ in 0..dice.from(1, 6) {
        now += dice.from(0, spec.pace());
        let left = u64::try_from(core.peek(now).available).unwrap_or(0);
        let cost = dice.from(0, left.min(spec.capacity()));
        let at = core.try_take(now, cost).expect("there is enough left");
        if dice.one_in(3) && !matches!(spec, Spec::Gauge { .. }) {
            core.settle(now, &Settled { at, reserved: cost, used: dice.from(0, 5 * cost), holder: None });
        }
    }
    (core, now)
}

#[test]
fn a_clock_that_steps_back_is_answered_as_of_the_last_use() {
    for_seeds(2_000, |dice| {
        let spec = any::kind(dice);
        let (core, stamp) = used(dice, &spec);
        for _ in 0..10 {
            let back = stamp - dice.from(0, 5 * spec.pace()).min(stamp);
            assert_eq!(core.peek(back), core.peek(stamp), "{spec:?}");
            let cost = dice.from(0, spec.capacity());
            let (mut early, mut late) = (core.clone(), core.clone());
            assert_eq!(early.take(back, cost, None), late.take(stamp, cost, None), "{spec:?}");
            assert_eq!(early.bucket, late.bucket);
        }
        Ok(())
    });
}

#[test]
fn a_clock_that_went_back_and_forth_leaves_no_trace() {
    for_seeds(2_000, |dice| {
        let spec = any::kind(dice);
        let (mut jumpy, mut now) = used(dice, &spec);
        let mut steady = jumpy.clone();
        for _ in 0..20 {
            now += dice.from(0, spec.pace());
            let (cost, back) = (dice.from(0, spec.capacity()), dice.from(0, 3 * spec.pace()));
            // What is denied while the clock is behind must not matter later.
            let denied = jumpy.clone().take(now - back, cost, None);
            if matches!(denied, Answer::Denied { .. }) {
                jumpy.take(now - back, cost, None);
            }
            jumpy.peek(now - back);
            assert_eq!(jumpy.take(now, cost, None), steady.take(now, cost, None), "{spec:?}");
        }
        Ok(())
    });
}

#[test]
fn a_clock_that_stepped_back_is_told_a_wait_that_holds() {
    for_seeds(2_000, |dice| {
        let spec = any::kind(dice);
        let (mut core, stamp) = used(dice, &spec);
        let back = stamp - dice.from(0, 3 * spec.pace()).min(stamp);
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
fn a_clock_far_ahead_is_full_and_not_more() {
    for_seeds(2_000, |dice| {
        let spec = TIMED[dice.from(0, 3) as usize](dice);
        let (mut core, now) = used(dice, &spec);
        let ahead = now + 10_000 * spec.pace();
        assert_eq!(core.peek(ahead).available, spec.capacity() as i64, "{spec:?}");
        core.try_take(ahead, spec.capacity()).map_err(|denial| denial.to_string())?;
        // Back on the right time nothing is left, and the wait to get something is known.
        assert_eq!(core.peek(now).available, 0, "{spec:?}");
        let denial = core.try_take(now, 1).expect_err("everything was taken");
        let Ready::At(ready) = denial.ready() else { return Err(format!("{spec:?} is stuck")) };
        core.try_take(ready.as_micros(), 1).map_err(|denial| denial.to_string())?;
        Ok(())
    });
}

const TIMED: [fn(&mut Dice) -> Spec; 4] = [any::bucket, any::fixed, any::sliding, any::session];

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
    // The one ahead fills the bucket once when it comes; after that time is its time, for both.
    assert!(admitted <= 100 + 100 + 1_000, "{admitted}");
    assert!(admitted >= 1_000, "{admitted}");
}
