//! Numbers that need not be predictable, from a seed that replays them.

/// A small generator (SplitMix64). For jitter, where quality hardly matters and replaying does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JitterRandom(u64);

impl JitterRandom {
    pub(crate) fn new(seed: u64) -> JitterRandom {
        JitterRandom(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A seed of chance, from the random keys that the standard library gives each hasher.
    pub(crate) fn seed() -> u64 {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(())
    }
}
