//! Pseudorandom numbers that only depend on the seed.

/// Mixes two numbers.
pub(crate) fn mix(seed: u64, number: u64) -> u64 {
    // The steps of SplitMix64.
    let mut z = seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Hashes bytes.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    // FNV-1a.
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Maps a number to the range from `low` to `high`, both included.
pub(crate) fn within(number: u64, low: u64, high: u64) -> u64 {
    match high.saturating_sub(low).checked_add(1) {
        Some(width) => low + number % width,
        None => number,
    }
}
