//! Admissions stay within what the limit promises, over any interval. The check uses histories
//! alone.

use crate::oracle::history::History;
use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::Core;
use crate::oracle::trace::{Plan, Trace};

fn keeps_the_bound(traces: u64, spec: fn(&mut TestRng) -> Spec) {
    for_seeds(traces, |rng| {
        let spec = spec(rng);
        let overuse_max = *rng.pick(&[0, 1, 10]);
        let plan = Plan { steps: 120, overuse_max, clock_back: rng.one_in(4) };
        let trace = Trace::new(&spec, plan, rng);
        let mut core = Core::new(spec.limit("x"), trace.now);
        trace.run(&mut core, &mut History::new(&spec)).map(drop)
    });
}

#[test]
fn in_any_interval_a_bucket_admits_at_most_its_capacity_and_what_was_refilled() {
    keeps_the_bound(1_000, any::bucket);
}

#[test]
fn a_fixed_window_admits_at_most_its_amount_in_each_window() {
    keeps_the_bound(1_000, any::fixed);
}

#[test]
fn a_sliding_window_admits_at_most_its_amount_in_every_window() {
    keeps_the_bound(2_000, any::sliding);
}

#[test]
fn a_coarse_sliding_window_admits_at_most_its_amount_in_every_window() {
    keeps_the_bound(1_000, |rng| {
        let period = rng.from(10, 5_000);
        Spec::Sliding { amount: rng.from(1, 50), period, step: Some(rng.from(period / 4, period)) }
    });
}

#[test]
fn a_session_quota_admits_at_most_two_sessions_in_any_one() {
    keeps_the_bound(1_000, any::session);
}

#[test]
fn a_calendar_quota_admits_at_most_its_amount_from_edge_to_edge() {
    keeps_the_bound(1_000, any::calendar);
}

#[test]
fn a_gauge_admits_at_most_its_capacity_at_once() {
    keeps_the_bound(1_000, any::gauge);
}
