//! Random numbers that a seed replays.

use tollgate_store::SplitMix64;

/// Returns the generator of a trace. Neighbouring seeds give unrelated traces.
pub(crate) fn seeded(seed: u64) -> SplitMix64 {
    SplitMix64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
}

/// Returns the seed to replay, if `TOLLGATE_SEED` names one.
pub(crate) fn replayed_seed() -> Option<u64> {
    std::env::var("TOLLGATE_SEED").ok().and_then(|seed| seed.parse().ok())
}

/// Runs `traces` traces, or the one to replay.
pub(crate) fn each_seed(traces: u64, run: impl Fn(u64)) {
    match replayed_seed() {
        Some(seed) => run(seed),
        None => (0..traces).for_each(run),
    }
}
