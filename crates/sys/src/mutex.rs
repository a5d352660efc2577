//! A mutex of one word on which the system lets threads sleep, as the standard library's, and without poison, which would
//! cost a tenth of an admission.
//!
//! A mutex that keeps its sleepers in a table of the process, as parking_lot's does, leaves those of the parent in the table of
//! a process that was forked off: its next sleeper may wait for a lock that no thread has, or get the memory of a thread that
//! is not there.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Guards a value. A thread that panics while it has it locked unlocks it.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// What reaches the value of a [`Mutex`], and unlocks it when it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and perhaps a thread sleeps until it is not.
const AWAITED: u32 = 2;

/// How often a thread looks again before it sleeps: as a rule the lock is held for less time than falling asleep takes.
const LOOKS: u32 = 100;

/// The lock of a [`Mutex`].
pub struct RawMutex(AtomicU32);

// SAFETY: who changes the word from FREE to another value has the lock, and only who has it changes the word back.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "each mutex begins with its own copy")]
    const INIT: RawMutex = RawMutex(AtomicU32::new(FREE));

    type GuardMarker = lock_api::GuardSend;

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.wait_and_lock();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            self.wake_one();
        }
    }
}

impl RawMutex {
    #[cold]
    fn wait_and_lock(&self) {
        if self.look_again() == FREE && lock_api::RawMutex::try_lock(self) {
            return;
        }
        // From here on it cannot know whether another thread sleeps, so it locks as if one did.
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            atomic_wait::wait(&self.0, AWAITED);
            self.look_again();
        }
    }

    /// Returns the word once the lock is free, another thread sleeps, or it took too long.
    fn look_again(&self) -> u32 {
        for _ in 0..LOOKS {
            let word = self.0.load(Ordering::Relaxed);
            if word != LOCKED {
                return word;
            }
            spin_loop();
        }
        LOCKED
    }

    #[cold]
    fn wake_one(&self) {
        atomic_wait::wake_one(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn many_threads_count_to_what_they_did() {
        const EACH: u64 = 20_000;
        let (count, start) = (Mutex::new(0_u64), Barrier::new(8));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    start.wait();
                    for round in 0..EACH {
                        let mut locked = count.lock();
                        let before = *locked;
                        if round % 1_000 == 0 {
                            // So that others fall asleep.
                            std::thread::yield_now();
                        }
                        *locked = before + 1;
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 8 * EACH);
    }

    #[test]
    fn a_thread_that_sleeps_is_woken() {
        let mutex = Mutex::new(());
        for _ in 0..50 {
            let locked = mutex.lock();
            std::thread::scope(|threads| {
                threads.spawn(|| drop(mutex.lock()));
                while mutex_word(&mutex) != AWAITED {
                    std::thread::yield_now();
                }
                drop(locked);
            });
            assert_eq!(mutex_word(&mutex), FREE);
        }
    }

    #[test]
    fn a_panic_leaves_it_free() {
        let mutex = Mutex::new(7);
        let panics = || {
            let _locked = mutex.lock();
            panic!("while it is locked");
        };
        let panicked = catch_unwind(AssertUnwindSafe(panics));
        assert!(panicked.is_err());
        assert_eq!(mutex.try_lock().as_deref(), Some(&7));
    }

    fn mutex_word(mutex: &Mutex<()>) -> u32 {
        // SAFETY: it is only looked at.
        unsafe { mutex.raw() }.0.load(Ordering::Relaxed)
    }
}
