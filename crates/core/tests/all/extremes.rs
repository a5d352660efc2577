//! No overflow and no panic, for any valid limit and any amount, at any time.

use crate::oracle;
use std::time::Duration;

use crate::oracle::Settled;
use crate::oracle::edges::Every;
use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::subject::{Answer, Core, Subject, tick};
use tollgate_core::{
    AMOUNT_MAX, Algorithm, Calendar, Costs, Holder, Limit, LimitBuilder, PERIOD_MAX, Ready, Resets, Span,
    UNBOUNDED,
};

/// Returns a number that is small, huge, or next to a power of two or ten.
fn boundary_number(rng: &mut TestRng, most: u64) -> u64 {
    let near = match rng.from(0, 4) {
        0 => rng.from(0, 3),
        1 => most - rng.from(0, 3).min(most),
        2 => 1 << rng.from(0, 63),
        3 => 10u64.pow(rng.from(0, 19) as u32),
        _ => rng.from(0, most),
    };
    let beside = [near, near.saturating_sub(1), near.saturating_add(1)];
    (*rng.pick(&beside)).min(most)
}

fn amount(rng: &mut TestRng) -> u64 {
    if rng.one_in(20) { UNBOUNDED } else { boundary_number(rng, AMOUNT_MAX).max(1) }
}

fn period(rng: &mut TestRng) -> Duration {
    Duration::from_micros(boundary_number(rng, PERIOD_MAX.as_micros()).max(1))
}

fn any_limit(rng: &mut TestRng) -> Limit {
    let (amount, burst, period) = (amount(rng), amount(rng), period(rng));
    let algorithm = [Algorithm::TokenBucket, Algorithm::LeakyBucket, Algorithm::Gcra];
    let limit: LimitBuilder = match rng.from(0, 6) {
        0 => Limit::rate("x", amount, period).algorithm(*rng.pick(&algorithm)),
        1 if amount != UNBOUNDED => Limit::rate("x", amount, period).burst(burst),
        2 => Limit::fixed_window("x", amount, period),
        3 => {
            let micros = period.as_micros() as u64;
            let step = rng.from(micros.div_ceil(100_000), micros);
            Limit::sliding_window("x", amount, period).resolution(Duration::from_micros(step))
        }
        4 => Limit::quota("x", amount, Resets::AfterFirstUse(Span::covering(period))),
        // This is rare, because a huge debt walks thousands of edges.
        5 if rng.one_in(8) => {
            let micros = period.as_micros() as u64;
            Limit::quota("x", amount, Calendar::new(&format!("every {micros}"), Every(micros)))
        }
        _ => Limit::resource("x", amount),
    };
    limit.build().expect("it is within the bounds")
}

fn step(rng: &mut TestRng, core: &mut Core, now: u64, reservations: &mut Vec<Settled>) {
    let capacity = core.limits[0].capacity();
    let cost = boundary_number(rng, capacity.min(AMOUNT_MAX));
    let expires = tick(boundary_number(rng, u64::MAX));
    let holder = rng.one_in(3).then(|| Holder { id: rng.from(0, u64::MAX).into(), expires });
    match core.take(now, cost, holder) {
        Answer::Admitted(at) => {
            let holder = holder.map(|holder| holder.id);
            reservations.push(Settled { at, reserved: cost, used: boundary_number(rng, u64::MAX), holder });
        }
        Answer::Denied { ready, .. } => {
            assert_ne!(ready, Ready::Now, "{}: {cost}", core.limits[0]);
            if let Ready::At(ready) = ready {
                assert!(ready > tick(now));
            }
        }
    }
    if rng.one_in(2) && !reservations.is_empty() {
        let reservation = reservations.swap_remove(rng.from(0, reservations.len() as u64 - 1) as usize);
        core.settle(now, &reservation);
    }
    let left = core.peek(now).available;
    assert!(left <= i64::try_from(capacity).unwrap_or(i64::MAX), "{left} of {capacity}");
    core.is_fresh(now);
    core.bucket.expire(&core.limits, tick(now));
}

#[test]
fn no_limit_and_amount_overflow_at_any_time() {
    for_seeds(2_000, |rng| {
        let mut now = boundary_number(rng, u64::MAX);
        let mut core = Core::new(any_limit(rng), now);
        let mut reservations = Vec::new();
        for _ in 0..25 {
            now = match rng.from(0, 3) {
                0 => boundary_number(rng, u64::MAX),
                1 => now.saturating_add(boundary_number(rng, PERIOD_MAX.as_micros())),
                _ => now,
            };
            step(rng, &mut core, now, &mut reservations);
        }
        Ok(())
    });
}

#[test]
fn no_change_from_one_extreme_to_another_overflows() {
    for_seeds(1_500, |rng| {
        let mut now = boundary_number(rng, u64::MAX);
        let mut core = Core::new(any_limit(rng), now);
        let mut reservations = Vec::new();
        for _ in 0..15 {
            now = now.saturating_add(boundary_number(rng, PERIOD_MAX.as_micros()));
            step(rng, &mut core, now, &mut reservations);
            if rng.one_in(2) {
                core.adopt(any_limit(rng), now);
            }
        }
        Ok(())
    });
}

#[test]
fn the_largest_debts_one_after_another_are_bounded() {
    for_seeds(500, |rng| {
        let limit = any_limit(rng);
        if limit.is_unbounded() || limit.is_resource() {
            return Ok(());
        }
        let mut core = Core::new(limit.clone(), 0);
        let at = core.try_take(0, 1).map_err(|denial| denial.to_string())?;
        for _ in 0..1_000 {
            core.settle(0, &Settled { at, reserved: 0, used: u64::MAX, holder: None });
        }
        let left = core.peek(0).available;
        assert!(left < -(AMOUNT_MAX as i64), "{limit}: {left}");
        assert!(core.try_take(0, 1).is_err());
        Ok(())
    });
}

#[test]
fn at_the_last_tick_nothing_is_minted() {
    for_seeds(2_000, |rng| {
        let limit = any_limit(rng);
        if limit.is_unbounded() {
            return Ok(());
        }
        let mut core = Core::new(limit.clone(), u64::MAX);
        core.try_take(u64::MAX, limit.capacity()).map_err(|denial| denial.to_string())?;
        assert!(core.try_take(u64::MAX, 1).is_err(), "{limit}");
        assert_eq!(core.peek(u64::MAX).available, 0, "{limit}");
        Ok(())
    });
}

#[test]
fn sums_over_a_queue_of_the_largest_demands_do_not_overflow() {
    for_seeds(1_000, |rng| {
        let core = Core::new(any_limit(rng), 0);
        let most = core.limits[0].capacity().min(AMOUNT_MAX);
        let mut sum: Costs = oracle::subject::costs(&core.limits, most);
        for _ in 0..rng.from(1, 70) {
            sum.add(&sum.clone());
        }
        let now = boundary_number(rng, u64::MAX);
        core.bucket.ready(&core.limits, tick(now), &sum);
        core.bucket.denial(&core.limits, tick(now), &sum);
        Ok(())
    });
}

#[test]
fn an_unbounded_resource_admits_every_demand() {
    let mut core = Core::new(Limit::resource("x", UNBOUNDED).build().expect("it is valid"), 0);
    for id in 0..30_000 {
        let holder = Holder { id, expires: tick(10) };
        assert_eq!(core.take(0, AMOUNT_MAX, Some(holder).filter(|_| id == 0)), Answer::Admitted(0));
    }
    assert_eq!(core.peek(0).available, i64::MAX);
}
