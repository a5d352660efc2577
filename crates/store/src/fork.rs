//! Forks: which of the processes that were forked off from each other this one is.
//!
//! A process that is forked off has a copy of the memory of its parent: its leases, its waiters, the state of its random
//! generators, and none of its threads. Whatever must not be taken for its own there remembers the number of the process that
//! made it and compares it with [`generation`]. Asking the system for the process id costs more than an admission does; so the
//! C library counts forks in the child, and the number is read from memory.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Process;

/// The number of a process, and what tells that this is another one by now.
struct Mark {
    guard: forkguard::Guard,
    number: u32,
    /// That of the process that was forked off.
    of_a_fork: OnceLock<Box<Mark>>,
}

impl Mark {
    fn new(number: u32) -> Mark {
        Mark { guard: forkguard::new(), number, of_a_fork: OnceLock::new() }
    }

    /// Whether this is the process that made it. A copy is asked, because whoever asks the original makes it forget.
    #[inline]
    fn is_this(&self) -> bool {
        !self.guard.clone().detected_fork()
    }

    #[cold]
    fn number_of_a_fork(&self) -> u32 {
        let next = self.of_a_fork.get_or_init(|| Box::new(Mark::new(self.number + 1)));
        if next.is_this() { next.number } else { next.number_of_a_fork() }
    }
}

/// A number that is another one in each of the processes that were forked off from each other, and the same in all threads of
/// one. Reading it is a matter of a few instructions.
#[inline]
pub fn generation() -> u32 {
    // loom runs one process.
    if cfg!(loom) {
        return 0;
    }
    static FIRST: OnceLock<Mark> = OnceLock::new();
    let first = FIRST.get_or_init(|| Mark::new(0));
    if first.is_this() { first.number } else { first.number_of_a_fork() }
}

/// An id unlike any other, also of a process that was forked off, whose hasher is seeded like that of its parent.
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
    fn all_threads_of_a_process_have_one_generation() {
        let here = generation();
        let there = std::thread::spawn(generation).join().expect("it does not panic");
        assert_eq!(here, there);
    }

    #[test]
    fn no_two_random_ids_are_alike() {
        let ids: std::collections::HashSet<u128> = (0..1_000).map(|_| random_id()).collect();
        assert_eq!(ids.len(), 1_000);
    }
}
