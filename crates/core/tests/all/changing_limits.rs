//! Limits that change while in use: lowering clamps, raising mints nothing, and every version keeps
//! its bound.

use crate::oracle::Settled;
use crate::oracle::history::History;
use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Core, Subject, tick};
use crate::oracle::trace::{Plan, Trace};
use tollgate_core::{Bucket, Limit, Limits, Ready, Take, Tick, demand};

const PLAN: Plan = Plan { steps: 25, overuse_max: 4, clock_back: false };

/// Returns a bucket after a random history.
fn used(rng: &mut TestRng, spec: &Spec) -> (Core, u64) {
    let mut core = Core::new(spec.limit("x"), 100);
    let now = Trace::at(spec, PLAN, rng, 100).run(&mut core, &mut History::new(spec));
    (core, now.expect("the bound is kept"))
}

#[test]
fn lowering_a_limit_clamps_at_once() {
    for_seeds(2_000, |rng| {
        let (old, new) = (any::kind(rng), any::kind(rng));
        let (mut core, now) = used(rng, &old);
        core.adopt(new.limit("x"), now);
        assert!(core.peek(now).available <= new.capacity() as i64, "{old:?} to {new:?}");
        Ok(())
    });
}

#[test]
fn raising_a_bucket_mints_nothing() {
    for_seeds(2_000, |rng| {
        let (old, new) = (any::bucket(rng), any::bucket(rng));
        let (mut core, now) = used(rng, &old);
        let before = core.peek(now).available;
        core.adopt(new.limit("x"), now);
        // Use of a resource and use of a rate do not convert.
        let is_gauge = |spec: &Spec| matches!(spec, Spec::Gauge { .. });
        let carried = if is_gauge(&old) == is_gauge(&new) { before } else { i64::MAX };
        assert_eq!(core.peek(now).available, carried.min(new.capacity() as i64), "{old:?} to {new:?}");
        Ok(())
    });
}

#[test]
fn changing_the_unit_back_and_forth_never_mints() {
    for_seeds(2_000, |rng| {
        let spec = any::bucket(rng);
        let (mut core, now) = used(rng, &spec);
        let before = core.peek(now);
        for _ in 0..5 {
            // The capacity is large enough that nothing is clamped, only converted to other units.
            let Spec::Bucket { algorithm, amount, period, .. } = any::bucket(rng) else { continue };
            core.adopt(Spec::Bucket { algorithm, amount, capacity: 1_000, period }.limit("x"), now);
        }
        core.adopt(spec.limit("x"), now);
        let after = core.peek(now);
        assert!(after.available <= before.available, "{spec:?}");
        let at = |full: Ready| if let Ready::At(at) = full { at } else { Tick::ZERO };
        assert!(at(after.full) >= at(before.full), "{spec:?}: {before:?} became {after:?}");
        Ok(())
    });
}

#[test]
fn each_version_keeps_its_bound() {
    for_seeds(1_500, |rng| {
        let mut spec = any::kind(rng);
        let (mut core, mut now) = used(rng, &spec);
        for _ in 0..5 {
            spec = any::kind(rng);
            core.adopt(spec.limit("x"), now);
            now = Trace::at(&spec, PLAN, rng, now).run(&mut core, &mut History::new(&spec))?;
        }
        Ok(())
    });
}

#[test]
fn another_machine_carries_over_what_is_left() {
    for_seeds(3_000, |rng| {
        let (old, new) = (any::kind(rng), any::kind(rng));
        if old.is_same_machine(&new) {
            return Ok(());
        }
        let (mut core, now) = used(rng, &old);
        let before = core.peek(now).available;
        core.adopt(new.limit("x"), now);
        // Use of a resource and use of a rate do not convert.
        let is_gauge = |spec: &Spec| matches!(spec, Spec::Gauge { .. });
        let carried = if is_gauge(&old) == is_gauge(&new) { before } else { i64::MAX };
        assert_eq!(core.peek(now).available, carried.min(new.capacity() as i64), "{old:?} to {new:?}");
        Ok(())
    });
}

#[test]
fn adopting_an_equal_limit_changes_no_answer() {
    for_seeds(2_000, |rng| {
        let spec = any::kind(rng);
        let (mut core, now) = used(rng, &spec);
        let same = core.clone();
        core.adopt(spec.limit("x"), now);
        for _ in 0..10 {
            let later = now + rng.from(0, 5 * spec.time_scale());
            assert_eq!(core.peek(later), same.peek(later), "{spec:?}");
        }
        Ok(())
    });
}

/// Returns any limit that can be in debt.
fn any_rate(rng: &mut TestRng) -> Spec {
    loop {
        let spec = any::kind(rng);
        if !matches!(spec, Spec::Gauge { .. }) {
            return spec;
        }
    }
}

#[test]
fn a_change_pays_no_more_of_a_debt_than_it_raises_the_limit_by() {
    for_seeds(2_000, |rng| {
        let mut spec = any_rate(rng);
        let mut core = Core::new(spec.limit("x"), 0);
        let at = core.try_take(0, 1).map_err(|denial| denial.to_string())?;
        let used = spec.capacity() + rng.from(1, 50);
        core.settle(0, &Settled { at, reserved: 1, used, holder: None });
        for _ in 0..4 {
            let (new, before) = (any_rate(rng), core.peek(0).available);
            core.adopt(new.limit("x"), 0);
            // A bucket mints nothing, and another machine takes over what is left. A raised window
            // has more room.
            let raised = new.is_same_machine(&spec) && !matches!(new, Spec::Bucket { .. });
            let raised = if raised { new.capacity().saturating_sub(spec.capacity()) } else { 0 };
            let (most, left) = (before + raised as i64, core.peek(0).available);
            assert!(left <= most, "{spec:?} to {new:?}: {before} became {left}");
            spec = new;
        }
        Ok(())
    });
}

#[test]
fn a_reservation_made_before_a_change_can_be_settled_after_it() {
    for_seeds(2_000, |rng| {
        let (old, new) = (any::kind(rng), any::kind(rng));
        let mut core = Core::new(old.limit("x"), 0);
        let at = core.try_take(0, old.capacity()).map_err(|denial| denial.to_string())?;
        core.adopt(new.limit("x"), 0);
        let used = rng.from(0, 2 * old.capacity());
        core.settle(0, &Settled { at, reserved: old.capacity(), used, holder: None });
        assert!(core.peek(0).available <= new.capacity() as i64, "{old:?} to {new:?}");
        Ok(())
    });
}

#[test]
fn after_a_change_the_wait_of_a_rate_is_known_and_tight() {
    for_seeds(2_000, |rng| {
        let old = any::kind(rng);
        let new = [any::bucket, any::fixed, any::sliding, any::session][rng.from(0, 3) as usize](rng);
        let (mut core, now) = used(rng, &old);
        core.adopt(new.limit("x"), now);
        let Err(denial) = core.try_take(now, new.capacity()) else { return Ok(()) };
        let Ready::At(ready) = denial.ready() else { return Err(format!("{old:?} to {new:?}: stuck")) };
        assert!(core.try_take(ready.as_micros() - 1, new.capacity()).is_err(), "{old:?} to {new:?}");
        assert!(core.try_take(ready.as_micros(), new.capacity()).is_ok(), "{old:?} to {new:?}");
        Ok(())
    });
}

#[test]
fn states_are_carried_over_by_name() {
    let old = Limits::new([Limit::per_minute("a", 10), Limit::per_minute("b", 20)]).unwrap();
    let names = ["c", "b", "d"].map(|name| Limit::per_minute(name, 20));
    let new = Limits::new(names).unwrap();
    let mut bucket = Bucket::fresh(&old, tick(0));
    let costs = old.costs(&demand! { a: 3, b: 5 }).unwrap();
    bucket.take(&old, tick(0), &Take::of(&costs)).unwrap();
    bucket.adopt(&old, &new, tick(0));
    let left: Vec<i64> = bucket.peek(&new, tick(0)).iter().map(|status| status.available()).collect();
    assert_eq!(left, [20, 15, 20]);
}
