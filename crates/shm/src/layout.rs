//! The layout of the file. Everything is counted in words of 64 bits. These constants define layout 3.

use std::sync::atomic::{AtomicU64, Ordering};

/// The first word of every store.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"tollgate");

/// The layout that this version reads and writes. Other layouts are refused.
pub(crate) const LAYOUT: u64 = 3;

/// Words of the header. Those up to [`CHECKSUM`] are written once.
pub(crate) const AT_MAGIC: u64 = 0;
pub(crate) const AT_LAYOUT: u64 = 1;
/// The boot of the host and the space of process ids that identify processes.
pub(crate) const AT_TAG: u64 = 2;
/// How many words the file may have.
pub(crate) const AT_CAPACITY: u64 = 3;
/// The seed of hashes.
pub(crate) const AT_SEED: u64 = 4;
/// How many entries the journal may have, how many processes may wait, and where the rest begins. They are constants,
/// stored so that a file with others is refused.
pub(crate) const AT_JOURNAL_MAX: u64 = 5;
pub(crate) const AT_PROCESSES_MAX: u64 = 6;
pub(crate) const AT_ARENA: u64 = 7;
/// The hash of all words before it.
pub(crate) const AT_CHECKSUM: u64 = 8;

/// The owner of the lock: see [`lock`](crate::lock).
pub(crate) const LOCK: u64 = 16;
/// How many entries the journal has.
pub(crate) const JOURNAL_USED: u64 = 17;
/// How many words the file has.
pub(crate) const SIZE: u64 = 18;
/// The first word that was never used.
pub(crate) const BUMP: u64 = 19;

/// Counts the writes of records.
pub(crate) const REVISION: u64 = 24;
/// How many waiters are in all queues.
pub(crate) const WAITING: u64 = 25;
/// The number of the next waiter.
pub(crate) const TICKETS: u64 = 26;

/// How many buckets there are, and in how many chains.
pub(crate) const BUCKETS: u64 = 32;
pub(crate) const CHAINS: u64 = 33;
/// The chain that is swept next.
pub(crate) const SWEEP: u64 = 34;
/// How many calls are remembered.
pub(crate) const CALLS: u64 = 35;
/// Counts removed limits, so that no process mistakes others for them.
pub(crate) const LIMITS_GONE: u64 = 36;
/// The node before the first of the ordered map.
pub(crate) const HEAD: u64 = 37;

/// The offset of store time, and when it was last compared with a wall clock: see [`clock`](crate::clock). They are changed
/// without the lock and without the journal, and are in a cache line of their own, because every call reads the first.
pub(crate) const CLOCK_OFFSET: u64 = 40;
pub(crate) const CLOCK_COMPARED: u64 = 41;

/// The segments of the table of chains.
pub(crate) const SEGMENTS: u64 = 64;
pub(crate) const SEGMENTS_MAX: u64 = 32;

/// The lists of free blocks, one for each size.
pub(crate) const FREE: u64 = 128;
pub(crate) const SIZES_MAX: u64 = 128;

const HEADER: u64 = 512;

/// How many processes may have waiters at once.
pub(crate) const PROCESSES_MAX: u64 = 4_096;
pub(crate) const PROCESSES: u64 = HEADER;
pub(crate) const PROCESS_WORDS: u64 = 8;

/// How many words one transaction may change. What it adds does not count.
pub(crate) const JOURNAL_MAX: u64 = 1 << 16;
pub(crate) const JOURNAL: u64 = PROCESSES + PROCESSES_MAX * PROCESS_WORDS;

/// Where blocks begin.
pub(crate) const ARENA: u64 = JOURNAL + JOURNAL_MAX * 2;

/// How many words a new file has, and the least that one may have room for.
pub(crate) const SIZE_MIN: u64 = ARENA + (1 << 13);

/// The most words that a file may have room for: a terabyte.
pub(crate) const CAPACITY_MAX: u64 = 1 << 37;

/// Hashes words, the same in every process.
pub(crate) fn hash(seed: u64, words: &[u64], len: u64) -> u64 {
    const ODD: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F];
    let folded = |one: u64, two: u64| {
        let product = u128::from(one) * u128::from(two);
        product as u64 ^ (product >> 64) as u64
    };
    let hashed = words.iter().fold(seed ^ len, |hash, word| folded(hash ^ *word, ODD[0]).rotate_left(23));
    folded(hashed ^ ODD[1], ODD[0] ^ seed | 1)
}

/// Returns the checksum of the words that are written once.
pub(crate) fn checksum(words: &[AtomicU64]) -> Option<u64> {
    let fixed = words.get(..AT_CHECKSUM as usize)?;
    let fixed: Vec<u64> = fixed.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    Some(hash(MAGIC, &fixed, AT_CHECKSUM))
}
