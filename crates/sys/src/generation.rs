//! Fork detection: a number that differs between a process and its forks.
//!
//! Asking the system for the process id takes longer than an admission. So the C library increments
//! a counter in every forked child, and the number is read from memory.

use std::sync::atomic::{AtomicU32, Ordering};

/// The counter; 0 until the handler is registered.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Returns a number that is the same in all threads of a process and different in its forks. It
/// takes a few instructions.
///
/// ```
/// use tollgate_sys::generation;
///
/// let created_in = generation();
/// // Later: true unless this process is a fork of the one that ran the line above.
/// assert_eq!(generation(), created_in);
/// ```
#[inline]
pub fn generation() -> u32 {
    match GENERATION.load(Ordering::Relaxed) {
        0 => count_forks(),
        number => number,
    }
}

/// Registers the fork handler. Several threads may register it at once: then a fork counts more
/// than once, which does no harm. A lock would, because a fork may not have the thread that holds
/// it.
#[cold]
fn count_forks() -> u32 {
    #[cfg(unix)]
    {
        extern "C" fn count_fork() {
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the function exists for as long as the process, and is async-signal-safe, as a
        // handler in a forked child must be.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        assert_eq!(failed, 0, "out of memory");
    }
    let first = GENERATION.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    // Relaxed suffices: no other memory depends on the number.
    first.map_or_else(|counted| counted, |_| 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_of_a_process_have_the_same_number() {
        let in_this_thread = generation();
        let in_another = std::thread::spawn(generation).join().expect("it does not panic");
        assert_eq!((in_this_thread, in_another), (generation(), in_this_thread));
    }

    #[cfg(unix)]
    #[test]
    fn a_fork_and_a_fork_of_a_fork_have_different_numbers() {
        let parent = generation();
        let differs = || {
            let child = generation();
            child != parent && in_a_fork(|| generation() != child && generation() != parent)
        };
        assert!(in_a_fork(differs));
        assert_eq!(generation(), parent);
    }

    /// Returns the result of `check` in a forked process.
    #[cfg(unix)]
    fn in_a_fork(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child continues with this thread alone, and exits before it returns to code
        // of the parent.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = i32::from(!check());
            // SAFETY: it ends the process without running code of the parent.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the call only writes to `status`.
        let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
        waited == pid && status == 0
    }
}
