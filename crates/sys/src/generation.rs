//! The number of this process among those that were forked off from each other.
//!
//! Asking the system for the process id costs more than an admission does. So the C library counts forks in the child, and the
//! number is read from memory.

use std::sync::atomic::{AtomicU32, Ordering};

/// 0 until forks are counted.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A number that is another one in each of the processes that were forked off from each other, and the same in all threads of
/// one. Reading it is a matter of a few instructions.
#[inline]
pub fn generation() -> u32 {
    match GENERATION.load(Ordering::Relaxed) {
        0 => count_forks(),
        number => number,
    }
}

/// Has the C library count forks from now on. Several threads may do so at once: then a fork counts more than once, and no
/// thread waits for another one, which a process that is forked off might not have.
#[cold]
fn count_forks() -> u32 {
    #[cfg(unix)]
    {
        extern "C" fn in_the_child() {
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the function is there for as long as the process, and does nothing that a process may not do that was just
        // forked off.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        assert_eq!(failed, 0, "the system has no memory for a few bytes");
    }
    let first = GENERATION.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    first.map_or_else(|counted| counted, |_| 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_of_a_process_have_one_number() {
        let here = generation();
        let there = std::thread::spawn(generation).join().expect("it does not panic");
        assert_eq!((here, there), (generation(), here));
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_is_forked_off_has_another_number_and_so_has_one_forked_off_from_that() {
        let parent = generation();
        let differs = || {
            let child = generation();
            child != parent && in_a_fork(|| generation() != child && generation() != parent)
        };
        assert!(in_a_fork(differs));
        assert_eq!(generation(), parent);
    }

    /// Whether something holds in a process that is forked off.
    #[cfg(unix)]
    fn in_a_fork(holds: impl FnOnce() -> bool) -> bool {
        // SAFETY: the process goes on with this thread alone, and ends before it returns to anything of the parent's.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = i32::from(!holds());
            // SAFETY: it ends the process, with nothing of the parent's being run.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: it writes to what it is given.
        let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
        waited == pid && status == 0
    }
}
