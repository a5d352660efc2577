//! The suite for [`Store`]: random traces of operations, applied to the store and to the core, must give the same verdicts, the
//! same remainders and the same waits.

mod differential;
mod laws;
mod model;
mod trace;
mod trace_limits;

use tollgate_store::{Clock, Store};

use crate::random::each_seed;

pub use differential::DifferentialStore;

/// Runs every law and `traces` random traces on stores made by `open`, which must go by the clock it is given. `TOLLGATE_SEED`
/// replays a trace that failed.
///
/// # Panics
///
/// On the first difference, with the seed of the trace and the step that differs.
pub fn run<S: Store>(traces: u64, open: impl Fn(Clock) -> S) {
    laws::run(&open);
    each_seed(traces, |seed| trace::run(seed, &open));
}
