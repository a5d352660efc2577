//! Numbers that look random and can be replayed.

/// A generator of numbers; the same seed gives the same ones.
pub(super) struct CatalogRandom(u64);

impl CatalogRandom {
    pub(super) fn new(seed: u64) -> CatalogRandom {
        CatalogRandom(seed)
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64: short, and good enough to choose by.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
