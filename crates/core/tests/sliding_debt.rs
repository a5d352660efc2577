//! How a sliding window pays its debt: the same way in one leap as in many steps, and by the numbers of the day.

mod oracle;

use oracle::Settled;
use oracle::seed::for_seeds;
use oracle::spec::{Spec, any};
use oracle::subject::{Core, Subject};

const SECOND: u64 = 1_000_000;

/// A window of which `used` was used at `now`, whatever its amount.
fn overused(spec: &Spec, now: u64, used: u64) -> Core {
    let mut core = Core::new(spec.limit("x"), now);
    let at = core.try_take(now, 1).expect("it is fresh");
    core.settle(now, &Settled { at, reserved: 1, used, holder: None });
    core
}

#[test]
fn a_debt_paid_in_one_leap_is_paid_as_in_many_steps() {
    for_seeds(2_000, |dice| {
        let spec = any::sliding(dice);
        let pace = spec.pace();
        let mut now = dice.from(0, pace * 3);
        let mut stepped = Core::new(spec.limit("x"), now);
        for _ in 0..dice.from(1, 6) {
            let cost = u64::try_from(stepped.peek(now).available).unwrap_or(0).min(2);
            let at = stepped.try_take(now, cost).map_err(|denial| denial.to_string())?;
            let used = if dice.one_in(2) { dice.from(0, 60) } else { cost };
            stepped.settle(now, &Settled { at, reserved: cost, used, holder: None });
            now += dice.from(0, pace);
        }
        let leaping = stepped.clone();
        for _ in 0..60 {
            now += dice.from(0, pace.div_ceil(3));
            // Nothing is taken, but the bucket is brought to now.
            stepped.try_take(now, 0).map_err(|denial| denial.to_string())?;
            if stepped.peek(now) != leaping.peek(now) {
                return Err(format!("{spec:?}: {:?} is {:?}", stepped.peek(now), leaping.peek(now)));
            }
        }
        Ok(())
    });
}

#[test]
fn a_refund_lets_debt_in_as_of_now_and_not_as_of_what_was_refunded() {
    let spec = Spec::Sliding { amount: 10, period: 60 * SECOND, step: None };
    let mut core = Core::new(spec.limit("x"), 0);
    core.try_take(0, 5).expect("it is fresh");
    core.try_take(0, 5).expect("half is left");
    let late = 59 * SECOND;
    core.settle(late, &Settled { at: 0, reserved: 5, used: 10, holder: None });
    core.settle(late, &Settled { at: 0, reserved: 5, used: 0, holder: None });
    // 5 were used at the start, and 5 a second ago: those count for another 59 seconds.
    assert_eq!(core.peek(late).available, 0);
    assert_eq!(core.peek(60 * SECOND).available, 5);
    assert_eq!(core.peek(late + 60 * SECOND).available, 10);
}

#[test]
fn a_shorter_window_pays_no_debt_for_the_time_before_it_was_made() {
    let day = Spec::Sliding { amount: 10, period: 86_400 * SECOND, step: None };
    let minute = Spec::Sliding { amount: 10, period: 60 * SECOND, step: None };
    let mut core = overused(&day, 0, 1_000);
    let now = 3_600 * SECOND;
    core.adopt(minute.limit("x"), now);
    // The window is free of what it used an hour ago, and takes one amount of the debt in.
    assert_eq!(core.peek(now).available, -980);
    assert_eq!(core.peek(now + 60 * SECOND).available, -970);
}

#[test]
fn a_huge_debt_after_the_limit_was_lowered_is_worked_off_at_once() {
    let wide = Spec::Sliding { amount: 1_000, period: 1_000, step: None };
    let narrow = Spec::Sliding { amount: 1, period: 1, step: None };
    let mut core = overused(&wide, 0, 1_000_000_000_000);
    core.adopt(narrow.limit("x"), 0);
    assert!(core.peek(3_600 * SECOND).available < -900_000_000_000);
    core.try_take(3_600 * SECOND, 0).expect("nothing is asked");
}

#[test]
fn at_the_end_of_time_nothing_expires_and_nothing_hangs() {
    let spec = Spec::Sliding { amount: 1, period: 1_000, step: Some(300) };
    for now in [u64::MAX - 2_000, u64::MAX - 1_500, u64::MAX - 1, u64::MAX] {
        let mut core = overused(&spec, now, 1_000_000_000_000);
        assert!(core.try_take(now, 1).is_err());
        assert!(core.try_take(u64::MAX, 1).is_err());
        assert!(core.peek(u64::MAX).available < -900_000_000_000);
    }
}
