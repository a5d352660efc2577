//! A futex-based mutex like the standard library's, but without poisoning, which would take a tenth
//! of an admission.
//!
//! A mutex with a process-wide table of waiters, such as parking_lot's, is not safe across a fork:
//! the child has its parent's waiters in that table, so a thread of the child may wait for a lock
//! that no thread holds, or be handed the memory of a thread that does not exist.
//!
//! An atomic exchange takes a third of the time of an admission, and a mutex usually needs two: one to
//! lock and one to unlock, which sees whether a thread sleeps. On Linux this one unlocks with a plain
//! store. If a thread marks the lock as contended between the check and the store of the thread that
//! unlocks it, the mark is lost and the sleeping thread is not woken, so each sleep is bounded.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::futex;

/// Guards a value. A thread that panics while it holds the lock unlocks it, without poisoning.
///
/// ```
/// use tollgate_sys::Mutex;
///
/// let count = Mutex::new(1);
/// *count.lock() += 1;
/// assert_eq!(count.into_inner(), 2);
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// Gives access to the value of a [`Mutex`], and unlocks it when it is dropped.
///
/// ```
/// use tollgate_sys::{Mutex, MutexGuard};
///
/// let mutex = Mutex::new(String::from("a"));
/// let mut guard: MutexGuard<'_, String> = mutex.lock();
/// guard.push('b');
/// assert_eq!(*guard, "ab");
/// ```
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and a thread may sleep until it is unlocked.
const CONTENDED: u32 = 2;

/// The number of checks before a thread sleeps: usually the lock is held for less time than going
/// to sleep takes.
const SPINS: u32 = 100;

/// The lock of a [`Mutex`].
// Hidden: only named in the types of `Mutex` and `MutexGuard`.
#[doc(hidden)]
pub struct RawMutex(AtomicU32);

// SAFETY: a thread that changes the word from FREE has the lock, and only that thread changes it
// back. Acquire on the way in and Release on the way out order the accesses of successive holders.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "each mutex starts with its own copy")]
    const INIT: RawMutex = RawMutex(AtomicU32::new(FREE));

    type GuardMarker = lock_api::GuardSend;

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.lock_contended();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        if cfg!(target_os = "linux") && self.0.load(Ordering::Relaxed) == LOCKED {
            self.0.store(FREE, Ordering::Release);
        } else if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            self.wake_one();
        }
    }
}

impl RawMutex {
    #[cold]
    fn lock_contended(&self) {
        if self.spin() == FREE && lock_api::RawMutex::try_lock(self) {
            return;
        }
        // From here on the thread cannot know whether another one sleeps, so it marks the lock as
        // contended.
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex::wait(&self.0, CONTENDED);
            self.spin();
        }
    }

    /// Spins until the lock is free or contended, or the spins are used up; returns the last value
    /// of the word.
    fn spin(&self) -> u32 {
        for _ in 0..SPINS {
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
        futex::wake_one(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn increments_of_many_threads_are_not_lost() {
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
                            // Gives other threads time to fall asleep.
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
    fn unlocking_wakes_a_sleeping_thread() {
        let mutex = Mutex::new(());
        for _ in 0..50 {
            let locked = mutex.lock();
            std::thread::scope(|threads| {
                threads.spawn(|| drop(mutex.lock()));
                while mutex_word(&mutex) != CONTENDED {
                    std::thread::yield_now();
                }
                drop(locked);
            });
            assert_eq!(mutex_word(&mutex), FREE);
        }
    }

    #[test]
    fn a_panic_unlocks_the_mutex() {
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
        // SAFETY: the word is only read.
        unsafe { mutex.raw() }.0.load(Ordering::Relaxed)
    }
}
