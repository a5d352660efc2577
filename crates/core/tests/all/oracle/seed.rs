//! A seeded random number generator: every failure names the seed that replays it.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A small generator (SplitMix64): the same seed yields the same numbers on every machine.
pub struct TestRng(u64);

impl TestRng {
    pub fn new(seed: u64) -> TestRng {
        TestRng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn from(&mut self, low: u64, high: u64) -> u64 {
        let span = high - low;
        if span == u64::MAX { self.next() } else { low + self.next() % (span + 1) }
    }

    /// Returns true once in `n` calls on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.from(0, of.len() as u64 - 1) as usize]
    }
}

/// The reason that is reported for a check that panicked.
pub const PANICKED: &str = "it panicked, see above";

/// Runs `check` with `runs` seeds, or with the one in `TOLLGATE_SEED`, and panics with the seed
/// that failed. `TOLLGATE_RUNS=10` runs ten times as many.
pub fn for_seeds(runs: u64, check: impl Fn(&mut TestRng) -> Result<(), String>) {
    let given = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let runs = runs * given("TOLLGATE_RUNS").unwrap_or(1);
    let seeds = given("TOLLGATE_SEED").map_or(0..runs, |seed| seed..seed + 1);
    if let Some((seed, why)) = failure_among(seeds, check) {
        panic!("{why}\nreplay with TOLLGATE_SEED={seed}");
    }
}

/// Returns the first of `runs` seeds that fails, and why: for checks that are expected to find a
/// fault.
pub fn first_failure(runs: u64, check: impl Fn(&mut TestRng) -> Result<(), String>) -> Option<(u64, String)> {
    failure_among(0..runs, check)
}

fn failure_among(
    mut seeds: Range<u64>,
    check: impl Fn(&mut TestRng) -> Result<(), String>,
) -> Option<(u64, String)> {
    seeds.find_map(|seed| {
        let outcome = catch_unwind(AssertUnwindSafe(|| check(&mut TestRng::new(seed))));
        // A panic of the subject is a failure like any other.
        let outcome = outcome.unwrap_or_else(|_| Err(PANICKED.into()));
        outcome.err().map(|why| (seed, why))
    })
}
