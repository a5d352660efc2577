//! Reproducible random numbers: SplitMix64.

/// A random number generator.
pub(super) struct DemoRandom(u64);

impl DemoRandom {
    /// Creates a generator with a seed.
    pub(super) fn from_seed(seed: u64) -> DemoRandom {
        DemoRandom(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_the_same_numbers_again_and_they_stay_in_bounds() {
        let numbers = |seed| -> Vec<u64> {
            let mut random = DemoRandom::from_seed(seed);
            (0..1_000).map(|_| random.between(5, 9)).collect()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7).iter().all(|number| (5..=9).contains(number)));
        assert!((5..=9).all(|number| numbers(7).contains(&number)));
    }
}
