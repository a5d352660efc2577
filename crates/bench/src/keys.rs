//! The keys both sides of a keyed row use: the same ones, in the same random order.

use std::sync::OnceLock;

const MILLION: u64 = 1_000_000;

/// Returns the name of a key, as short as a typical user id.
pub(crate) fn key(index: u64) -> String {
    format!("user-{index:07}")
}

/// Returns a million names, created once for all rows.
pub(crate) fn million() -> &'static [String] {
    static KEYS: OnceLock<Vec<String>> = OnceLock::new();
    KEYS.get_or_init(|| (0..MILLION).map(key).collect())
}

/// An endless random walk over keys, from the same start on every side (xorshift64*).
pub(crate) struct KeyWalk {
    keys: &'static [String],
    state: u64,
}

impl KeyWalk {
    pub(crate) fn over(keys: &'static [String]) -> Self {
        Self { keys, state: 0x9E37_79B9_7F4A_7C15 }
    }

    pub(crate) fn step(&mut self) -> &'static String {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let random = u128::from(self.state.wrapping_mul(0x2545_F491_4F6C_DD1D));
        // The high half of the product is uniform over the keys, without a division.
        let index = (random * self.keys.len() as u128) >> 64;
        &self.keys[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_walks_visit_the_same_keys_in_the_same_order() {
        let mut one = KeyWalk::over(million());
        let mut two = KeyWalk::over(million());
        let mut seen = std::collections::HashSet::new();
        for _ in 0..10_000 {
            let key = one.step();
            assert_eq!(key, two.step());
            seen.insert(key);
        }
        assert!(seen.len() > 9_900, "only {} keys", seen.len());
    }
}
