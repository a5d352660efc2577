//! Top-ups: debt is repaid first, nothing exceeds its capacity, resources are unchanged.

use crate::oracle::Settled;
use crate::oracle::history::History;
use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Core, Subject, costs, tick};
use crate::oracle::trace::{Plan, Trace};
use tollgate_core::{Bucket, Limit, Limits, Resets, Span, Take, UNBOUNDED, demand};

const PLAN: Plan = Plan { steps: 25, overuse_max: 4, clock_back: true };

/// Returns a bucket after a random history.
fn used(rng: &mut TestRng, spec: &Spec) -> (Core, u64) {
    let mut core = Core::new(spec.limit("x"), 100);
    let now = Trace::at(spec, PLAN, rng, 100).run(&mut core, &mut History::new(spec));
    (core, now.expect("the bound is kept"))
}

fn top_up(core: &mut Core, now: u64, amount: u64) {
    let wide = Limits::new([Limit::per_minute("x", UNBOUNDED)]).expect("one limit is a set");
    core.bucket.top_up(&core.limits, tick(now), &costs(&wide, amount));
}

#[test]
fn a_top_up_adds_its_amount_up_to_the_capacity() {
    for_seeds(4_000, |rng| {
        let spec = any::kind(rng);
        let (mut core, now) = used(rng, &spec);
        let before = core.peek(now).available;
        let amount = rng.from(0, 3 * spec.capacity());
        top_up(&mut core, now, amount);
        let (after, capacity) = (core.peek(now).available, spec.capacity() as i64);
        let expected = match spec {
            Spec::Gauge { .. } => before,
            _ => (before + amount as i64).min(capacity),
        };
        if after == expected { Ok(()) } else { Err(format!("{spec:?}: {before} + {amount} made {after}")) }
    });
}

#[test]
fn a_top_up_never_moves_the_stamp_back() {
    for_seeds(2_000, |rng| {
        let spec = any::kind(rng);
        let (mut core, now) = used(rng, &spec);
        let stamp = core.bucket.stamp();
        top_up(&mut core, now.saturating_sub(rng.from(0, 50)), 1);
        if core.bucket.stamp() >= stamp { Ok(()) } else { Err("the bucket went back".into()) }
    });
}

#[test]
fn debt_is_repaid_first() {
    for_seeds(2_000, |rng| {
        let kinds = [any::bucket, any::fixed, any::sliding, any::session, any::calendar];
        let spec = rng.pick(&kinds)(rng);
        let mut core = Core::new(spec.limit("x"), 100);
        let debt = rng.from(1, 50);
        core.settle(100, &Settled { at: 100, reserved: 0, used: spec.capacity() + debt, holder: None });
        top_up(&mut core, 100, debt - 1);
        assert_eq!(core.peek(100).available, -1, "{spec:?}");
        top_up(&mut core, 100, 1);
        assert_eq!(core.peek(100).available, 0, "{spec:?}");
        top_up(&mut core, 100, 1);
        assert_eq!(core.peek(100).available, 1, "{spec:?}");
        Ok(())
    });
}

#[test]
fn a_session_that_is_topped_up_stays_open() {
    let session = Resets::AfterFirstUse(Span::from_secs(60));
    let mut core = Core::new(Limit::quota("x", 10, session).build().unwrap(), 0);
    core.try_take(0, 10).unwrap();
    top_up(&mut core, 30_000_000, 100);
    assert_eq!(core.peek(30_000_000).available, 10);
    assert!(!core.is_fresh(59_999_999), "an open session ends when it ends");
    core.try_take(30_000_000, 10).unwrap();
    assert_eq!(core.try_take(59_999_999, 1).unwrap_err().ready(), tollgate_core::Ready::At(tick(60_000_000)));
    assert!(core.try_take(60_000_000, 10).is_ok());
}

#[test]
fn a_refund_after_a_top_up_does_not_exceed_the_capacity() {
    for_seeds(2_000, |rng| {
        let spec = any::kind(rng);
        let (mut core, now) = used(rng, &spec);
        let left = u64::try_from(core.peek(now).available).unwrap_or(0);
        let Ok(at) = core.try_take(now, left) else { return Ok(()) };
        top_up(&mut core, now, left);
        core.settle(now, &Settled { at, reserved: left, used: 0, holder: None });
        let available = core.peek(now).available;
        if available <= spec.capacity() as i64 { Ok(()) } else { Err(format!("{spec:?} has {available}")) }
    });
}

#[test]
fn a_top_up_only_changes_the_limits_it_names() {
    let limits = [Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 100), Limit::resource("slots", 2)];
    let limits = Limits::new(limits).unwrap();
    let mut bucket = Bucket::fresh(&limits, tick(0));
    let all = limits.costs(&demand! { rpm: 10, tpm: 100, slots: 2 }).unwrap();
    bucket.take(&limits, tick(0), &Take::of(&all)).unwrap();
    bucket.top_up(&limits, tick(0), &limits.costs(&demand! { tpm: 30, slots: 2 }).unwrap());
    let left: Vec<i64> = bucket.peek(&limits, tick(0)).iter().map(|status| status.available()).collect();
    assert_eq!(left, [0, 30, 0]);
}
