//! What the oracle admits, we admit; what is left is the same; the wait is tight to the tick.

mod oracle;

use oracle::seed::{Dice, for_seeds};
use oracle::spec::{Spec, any};
use oracle::subject::Core;
use oracle::trace::{PLAN, Plan, compare};
use tollgate_core::Algorithm;

fn agrees(traces: u64, spec: fn(&mut Dice) -> Spec) {
    for_seeds(traces, |dice| {
        let spec = spec(dice);
        let plan = Plan { clock_back: dice.one_in(4), ..PLAN };
        compare(&spec, plan, dice, |spec, now| Core::new(spec.limit("x"), now))
    });
}

#[test]
fn a_token_bucket_agrees_with_its_textbook() {
    agrees(1_000, |dice| any::bucket_as(dice, Algorithm::TokenBucket));
}

#[test]
fn a_leaky_bucket_agrees_with_its_textbook() {
    agrees(1_000, |dice| any::bucket_as(dice, Algorithm::LeakyBucket));
}

#[test]
fn gcra_agrees_with_its_textbook() {
    agrees(1_000, |dice| any::bucket_as(dice, Algorithm::Gcra));
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
