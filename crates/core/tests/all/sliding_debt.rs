//! How a sliding window repays its debt: in one leap as in many steps, and by the current numbers.

use crate::oracle::Settled;
use crate::oracle::seed::for_seeds;
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Core, Subject};

const SECOND: u64 = 1_000_000;

/// Returns a window of which `used` was used at `now`, whatever its amount.
fn overused(spec: &Spec, now: u64, used: u64) -> Core {
    let mut core = Core::new(spec.limit("x"), now);
    let at = core.try_take(now, 1).expect("it is fresh");
    core.settle(now, &Settled { at, reserved: 1, used, holder: None });
    core
}

#[test]
fn a_debt_is_repaid_in_one_leap_as_in_many_steps() {
    for_seeds(2_000, |rng| {
        let spec = any::sliding(rng);
        let time_scale = spec.time_scale();
        let mut now = rng.from(0, time_scale * 3);
        let mut stepped = Core::new(spec.limit("x"), now);
        for _ in 0..rng.from(1, 6) {
            let cost = u64::try_from(stepped.peek(now).available).unwrap_or(0).min(2);
            let at = stepped.try_take(now, cost).map_err(|denial| denial.to_string())?;
            let used = if rng.one_in(2) { rng.from(0, 60) } else { cost };
            stepped.settle(now, &Settled { at, reserved: cost, used, holder: None });
            now += rng.from(0, time_scale);
        }
        let leaping = stepped.clone();
        for _ in 0..60 {
            now += rng.from(0, time_scale.div_ceil(3));
            // Takes nothing, but brings the bucket to `now`.
            stepped.try_take(now, 0).map_err(|denial| denial.to_string())?;
            if stepped.peek(now) != leaping.peek(now) {
                return Err(format!("{spec:?}: {:?} is {:?}", stepped.peek(now), leaping.peek(now)));
            }
        }
        Ok(())
    });
}

#[test]
fn debt_takes_refunded_room_as_of_now() {
    let spec = Spec::Sliding { amount: 10, period: 60 * SECOND, step: None };
    let mut core = Core::new(spec.limit("x"), 0);
    core.try_take(0, 5).expect("it is fresh");
    core.try_take(0, 5).expect("half is left");
    let late = 59 * SECOND;
    core.settle(late, &Settled { at: 0, reserved: 5, used: 10, holder: None });
    core.settle(late, &Settled { at: 0, reserved: 5, used: 0, holder: None });
    // 5 were used at the start and 5 a second ago: the latter count for another 59 seconds.
    assert_eq!(core.peek(late).available, 0);
    assert_eq!(core.peek(60 * SECOND).available, 5);
    assert_eq!(core.peek(late + 60 * SECOND).available, 10);
}

#[test]
fn a_shorter_window_repays_no_debt_for_the_time_before_the_change() {
    let day = Spec::Sliding { amount: 10, period: 86_400 * SECOND, step: None };
    let minute = Spec::Sliding { amount: 10, period: 60 * SECOND, step: None };
    let mut core = overused(&day, 0, 1_000);
    let now = 3_600 * SECOND;
    core.adopt(minute.limit("x"), now);
    // The window drops what it used an hour ago, and takes one amount of the debt in.
    assert_eq!(core.peek(now).available, -980);
    assert_eq!(core.peek(now + 60 * SECOND).available, -970);
}

#[test]
fn a_huge_debt_after_the_limit_was_lowered_is_computed_quickly() {
    let wide = Spec::Sliding { amount: 1_000, period: 1_000, step: None };
    let narrow = Spec::Sliding { amount: 1, period: 1, step: None };
    let mut core = overused(&wide, 0, 1_000_000_000_000);
    core.adopt(narrow.limit("x"), 0);
    assert!(core.peek(3_600 * SECOND).available < -900_000_000_000);
    core.try_take(3_600 * SECOND, 0).expect("nothing is asked");
}

#[test]
fn at_the_last_tick_nothing_expires_and_nothing_hangs() {
    let spec = Spec::Sliding { amount: 1, period: 1_000, step: Some(300) };
    for now in [u64::MAX - 2_000, u64::MAX - 1_500, u64::MAX - 1, u64::MAX] {
        let mut core = overused(&spec, now, 1_000_000_000_000);
        assert!(core.try_take(now, 1).is_err());
        assert!(core.try_take(u64::MAX, 1).is_err());
        assert!(core.peek(u64::MAX).available < -900_000_000_000);
    }
}
