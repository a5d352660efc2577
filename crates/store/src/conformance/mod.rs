//! The suite that every store runs: random traces of operations, applied to the store and to the core, must
//! give the same verdicts, the same remainders and the same waits.
//!
//! Each part is for one trait: [`run`] for [`Store`], [`records`] for [`Records`], [`backend`] for [`Backend`].
//!
//! ```
//! use tollgate_store::{conformance, Memory};
//!
//! let open = |clock| Memory::builder().clock(clock).build();
//! conformance::run(20, open);
//! conformance::records(20, open);
//! conformance::backend(5, open);
//! ```

mod backend;
mod differential;
mod laws;
mod model;
mod random;
mod records;
mod trace;
mod trace_limits;

use crate::records::Records;
use crate::usage::UsageRetention;
use crate::{Backend, Clock, Store};

pub use differential::Twins;

/// Runs `traces` random traces and every law on stores made by `open`, which must tell time by the clock it is
/// given. A trace that failed is run again with `TOLLGATE_SEED`.
///
/// # Panics
///
/// On the first difference, with the seed of the trace and the step that differs.
pub fn run<S: Store>(traces: u64, open: impl Fn(Clock) -> S) {
    laws::run(&open);
    each_seed(traces, |seed| trace::run(seed, &open));
}

/// As [`run`], for what a store of records promises.
///
/// # Panics
///
/// As [`run`].
pub fn records<R: Records>(traces: u64, open: impl Fn(Clock) -> R) {
    records::run(traces, &open);
}

/// As [`run`], for what a store promises that has buckets and records together: that they change together, that
/// what is forgotten is gone, and that usage is counted exactly.
///
/// # Panics
///
/// As [`run`].
pub fn backend<B: Backend>(traces: u64, open: impl Fn(Clock) -> B) {
    backend::run(traces, &open);
}

/// Checks that a store keeps records of usage for as long as it is configured to: `open` makes one that keeps them for
/// as long as its second argument says.
///
/// # Panics
///
/// On the first record that is gone too early, there too long, or has another expiry.
pub fn usage_retention<B: Backend>(open: impl Fn(Clock, UsageRetention) -> B) {
    backend::retention::run(&open);
}

fn each_seed(traces: u64, run: impl Fn(u64)) {
    match std::env::var("TOLLGATE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => run(seed),
        None => (0..traces).for_each(run),
    }
}
