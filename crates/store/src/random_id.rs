//! Ids unlike any other.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Process;

/// Returns an id unlike any other, also in a forked process, whose hasher has the seed of its parent.
pub fn random_id() -> u128 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let (process, count) = (Process::this(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let half = |half: u8| u128::from(RandomState::new().hash_one((process, count, half)));
    half(0) << 64 | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_random_ids_are_alike() {
        let ids: std::collections::HashSet<u128> = (0..1_000).map(|_| random_id()).collect();
        assert_eq!(ids.len(), 1_000);
    }
}
