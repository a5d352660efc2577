//! Random numbers: a generator that a seed replays, and numbers that no seed predicts.
//!
//! Neither is for secrets: keys and tokens come from the operating system.

use std::hash::{BuildHasher, RandomState};

/// A seeded generator of random numbers (SplitMix64). The same seed gives the same numbers on every machine.
///
/// It is for jitter, simulations and tests, where being replayable matters more than quality.
///
/// ```
/// use tollgate_store::SplitMix64;
///
/// let [mut one, mut same] = [SplitMix64::new(7), SplitMix64::new(7)];
/// assert_eq!(one.next_u64(), same.next_u64());
/// assert!((5..=9).contains(&one.between(5, 9)));
/// assert!(["a", "b"].contains(one.pick(&["a", "b"])));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Returns the generator of a seed.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Returns the next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        SplitMix64::mix(self.0)
    }

    /// Returns the next number below `bound`; a bound of 0 counts as 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }

    /// Returns the next number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low).checked_add(1) {
            Some(width) => low + self.below(width),
            None => self.next_u64(),
        }
    }

    /// Returns true once in `chances` draws, on average.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// Returns one of the elements.
    ///
    /// # Panics
    ///
    /// If there is no element.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// Scrambles the bits of a number. Different numbers stay different.
    pub const fn mix(number: u64) -> u64 {
        let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Returns an unpredictable number: the seed of a [`SplitMix64`], or the jitter of a pause.
///
/// ```
/// use tollgate_store::random_u64;
///
/// assert_ne!(random_u64(), random_u64());
/// ```
pub fn random_u64() -> u64 {
    // The keys of a hasher are random and differ from hasher to hasher. A forked process copies them, and its id does not.
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers = [(); 5].map(|()| random.next_u64());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn numbers_stay_in_bounds_and_reach_them() {
        let mut random = SplitMix64::new(7);
        let drawn: Vec<u64> = (0..1_000).map(|_| random.between(5, 9)).collect();
        assert!(drawn.iter().all(|number| (5..=9).contains(number)));
        assert!((5..=9).all(|number| drawn.contains(&number)));
        assert_eq!([random.below(0), random.below(1), random.between(3, 3)], [0, 0, 3]);
        assert!((0..100).any(|_| random.between(0, u64::MAX) > u64::MAX / 2));
        assert!(random.one_in(1));
        assert_eq!((0..1_000).filter(|_| random.one_in(4)).count() / 100, 2);
    }

    #[test]
    fn unpredictable_numbers_do_not_repeat() {
        let numbers: std::collections::HashSet<u64> = (0..1_000).map(|_| random_u64()).collect();
        assert_eq!(numbers.len(), 1_000);
    }
}
