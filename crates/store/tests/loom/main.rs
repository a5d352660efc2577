//! The cell, the queue and the hand-over under loom, which tries every order in which threads may meet.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate-store --release --test loom`
//!
//! Every checker runs over the cell and over a toy: the toy passes as long as it is right, and is caught with
//! each fault that can be planted in it.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod block_on;
mod cell;
mod chain;
mod forget;
mod gate;
mod hand_over;
mod limits;
mod store;
mod toy;

/// How many times threads may be interrupted in one run of a model. What two cannot break, four hardly do either.
const PREEMPTIONS: usize = 4;

/// Runs `model` in every order of its threads.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

/// Asserts that `model` does not hold.
fn must_fail(why: &str, model: impl Fn() + Send + Sync + 'static) {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(model)));
    assert!(outcome.is_err(), "{why} was not noticed");
}
