//! The core agrees with the oracle: the verdict, what is left, and the wait to the tick.

use crate::oracle::seed::{TestRng, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::Core;
use crate::oracle::trace::{PLAN, Plan, compare};
use tollgate_core::Algorithm;

fn agrees(traces: u64, spec: fn(&mut TestRng) -> Spec) {
    for_seeds(traces, |rng| {
        let spec = spec(rng);
        let plan = Plan { clock_back: rng.one_in(4), ..PLAN };
        compare(&spec, plan, rng, |spec, now| Core::new(spec.limit("x"), now))
    });
}

#[test]
fn a_token_bucket_agrees_with_its_textbook() {
    agrees(1_000, |rng| any::bucket_as(rng, Algorithm::TokenBucket));
}

#[test]
fn a_leaky_bucket_agrees_with_its_textbook() {
    agrees(1_000, |rng| any::bucket_as(rng, Algorithm::LeakyBucket));
}

#[test]
fn gcra_agrees_with_its_textbook() {
    agrees(1_000, |rng| any::bucket_as(rng, Algorithm::Gcra));
}

#[test]
fn a_fixed_window_agrees_with_the_count_of_every_window() {
    agrees(2_000, any::fixed);
}

#[test]
fn a_sliding_window_agrees_with_the_list_of_events() {
    agrees(3_000, any::sliding);
}

#[test]
fn a_session_quota_agrees_with_the_walk_from_edge_to_edge() {
    agrees(2_000, any::session);
}

#[test]
fn a_calendar_quota_agrees_with_the_walk_over_irregular_edges() {
    agrees(2_000, any::calendar);
}

#[test]
fn a_cooldown_agrees_with_the_instant_it_ends() {
    agrees(2_000, any::cooldown);
}

#[test]
fn a_gauge_agrees_with_the_list_of_holders() {
    agrees(2_000, any::gauge);
}
