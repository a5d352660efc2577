//! The suite that every store runs: random traces of operations, applied to the store and to the core, must
//! give the same verdicts, the same remainders and the same waits.
//!
//! ```
//! use tollgate_store::{conformance, Memory};
//!
//! conformance::run(20, |clock| Memory::builder().clock(clock).build());
//! ```

mod laws;
mod model;
mod random;
mod scenery;
mod trace;

use crate::{Clock, Store};

/// Runs `traces` random traces and every law on stores made by `open`, which must tell time by the clock it is
/// given. A trace that failed is run again with `TOLLGATE_SEED`.
///
/// # Panics
///
/// On the first difference, with the seed of the trace and the step that differs.
pub fn run<S: Store>(traces: u64, open: impl Fn(Clock) -> S) {
    laws::run(&open);
    match std::env::var("TOLLGATE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => trace::run(seed, &open),
        None => (0..traces).for_each(|seed| trace::run(seed, &open)),
    }
}
