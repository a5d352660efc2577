//! Random and mutated inputs for a fuzz target, in the tests of stable Rust. Each crate with a target includes this file.

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The inputs of one run of a target: a few seconds without optimisation.
const INPUTS: u64 = 20_000;

/// The most bytes that a mutation lets an input grow to.
const BYTES_MAX: usize = 4_096;

/// Pieces at which parsers decide.
const PIECES: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"9223372036854775807",
    b"1e309",
    b".",
    b":",
    b"/",
    b"*",
    b"\"",
    b"\\u0000",
    b"\n",
    b"{}",
    b"[[",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0",
];

/// Calls a target with mutations of the examples and with random bytes. A failure prints the seed that replays it:
/// `TOLLGATE_SEED=17 cargo test ...` calls the target with that input alone.
pub(crate) fn run(target: fn(&[u8]), examples: &[&[u8]]) {
    examples.iter().for_each(|example| target(example));
    let given = std::env::var("TOLLGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let start = given.unwrap_or_else(|| RandomState::new().hash_one(0) >> 1);
    let count = if given.is_some() { 1 } else { INPUTS };
    for seed in start..start + count {
        let input = input(seed, examples);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            eprintln!(
                "TOLLGATE_SEED={seed} replays this failure; the input is {:?}",
                input.escape_ascii().to_string()
            );
            resume_unwind(panic);
        }
    }
}

/// Returns the input of a seed.
fn input(seed: u64, examples: &[&[u8]]) -> Vec<u8> {
    let mut random = Random(seed);
    if random.below(8) == 0 {
        return (0..random.below(64)).map(|_| random.below(256) as u8).collect();
    }
    let mut bytes = examples[random.below(examples.len())].to_vec();
    for _ in 0..=random.below(6) {
        mutate(&mut bytes, examples, &mut random);
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, examples: &[&[u8]], random: &mut Random) {
    let (one, two) = (random.below(bytes.len() + 1), random.below(bytes.len() + 1));
    let (start, end) = (one.min(two), one.max(two));
    match random.below(7) {
        0 if start < bytes.len() => bytes[start] ^= 1 << random.below(8),
        1 if start < bytes.len() => bytes[start] = random.below(256) as u8,
        2 => bytes.truncate(start),
        3 => drop(bytes.drain(start..end)),
        4 => bytes.extend_from_within(start..end),
        5 => {
            let other = examples[random.below(examples.len())];
            bytes.truncate(start);
            bytes.extend_from_slice(&other[random.below(other.len() + 1)..]);
        }
        _ => drop(bytes.splice(start..start, PIECES[random.below(PIECES.len())].iter().copied())),
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
