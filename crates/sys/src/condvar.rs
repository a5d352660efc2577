//! The condition variable that goes with the mutex.

use std::sync::PoisonError;
use std::time::Duration;

use crate::MutexGuard;

/// Lets threads sleep until another one notifies them. They may also wake up for no reason.
#[derive(Debug, Default)]
pub struct Condvar {
    /// How often it was notified.
    notices: std::sync::Mutex<u64>,
    notified: std::sync::Condvar,
}

impl Condvar {
    /// One on which no thread sleeps.
    pub const fn new() -> Condvar {
        Condvar { notices: std::sync::Mutex::new(0), notified: std::sync::Condvar::new() }
    }

    /// Unlocks the mutex, sleeps until it is notified, and locks it again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_for(guard, Duration::MAX);
    }

    /// As [`wait`](Condvar::wait), and no longer than `most`.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, most: Duration) {
        // Locked before the mutex is unlocked, so that no notice comes in between and is missed.
        let notices = self.lock();
        let seen = *notices;
        MutexGuard::unlocked(guard, || {
            let not_yet = |notices: &mut u64| *notices == seen;
            drop(self.notified.wait_timeout_while(notices, most, not_yet));
        });
    }

    /// Wakes one thread that sleeps on it.
    pub fn notify_one(&self) {
        *self.lock() += 1;
        self.notified.notify_one();
    }

    /// Wakes all threads that sleep on it.
    pub fn notify_all(&self) {
        *self.lock() += 1;
        self.notified.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::Mutex;

    use super::*;

    #[test]
    fn one_that_is_notified_wakes_up() {
        let (turn, changed) = (Mutex::new(0), Condvar::new());
        let until = |mine: u32| {
            let mut now = turn.lock();
            while *now != mine {
                changed.wait(&mut now);
            }
            *now += 1;
            changed.notify_all();
        };
        std::thread::scope(|threads| {
            for first in 0..4 {
                threads.spawn(move || (0..500).for_each(|round| until(first + 4 * round)));
            }
        });
        assert_eq!(turn.into_inner(), 2_000);
    }

    #[test]
    fn one_that_is_not_notified_wakes_up_in_the_end() {
        let mutex = Mutex::new(());
        Condvar::new().wait_for(&mut mutex.lock(), Duration::from_millis(1));
    }
}
