//! Random numbers that a seed replays.

/// SplitMix64: tiny, and good enough to choose test cases.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Returns true once in so many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of several.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
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
