//! The condition variable for [`Mutex`](crate::Mutex).

use std::sync::PoisonError;
use std::time::Duration;

use crate::MutexGuard;

/// Lets threads sleep until another thread notifies them. Spurious wakeups are possible.
///
/// ```
/// use std::thread;
/// use tollgate_sys::{Condvar, Mutex};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// thread::scope(|threads| {
///     threads.spawn(|| {
///         *ready.lock() = true;
///         changed.notify_all();
///     });
///     let mut guard = ready.lock();
///     while !*guard {
///         changed.wait(&mut guard);
///     }
/// });
/// ```
#[derive(Debug, Default)]
pub struct Condvar {
    /// The number of notifications so far.
    notifications: std::sync::Mutex<u64>,
    notified: std::sync::Condvar,
}

impl Condvar {
    /// Creates a condition variable that no thread waits for.
    pub const fn new() -> Condvar {
        Condvar { notifications: std::sync::Mutex::new(0), notified: std::sync::Condvar::new() }
    }

    /// Unlocks the mutex, sleeps until a notification, and locks it again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_for(guard, Duration::MAX);
    }

    /// Waits like [`wait`](Condvar::wait), but at most for `timeout`.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) {
        // Lock order: this lock is taken before the mutex is unlocked, so that no notification in
        // between is missed.
        let notifications = self.lock();
        let seen = *notifications;
        MutexGuard::unlocked(guard, || {
            let not_yet = |notifications: &mut u64| *notifications == seen;
            drop(self.notified.wait_timeout_while(notifications, timeout, not_yet));
        });
    }

    /// Wakes one sleeping thread.
    pub fn notify_one(&self) {
        *self.lock() += 1;
        self.notified.notify_one();
    }

    /// Wakes all sleeping threads.
    pub fn notify_all(&self) {
        *self.lock() += 1;
        self.notified.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::Mutex;

    use super::*;

    #[test]
    fn a_notified_thread_wakes_up() {
        let (next, changed) = (Mutex::new(0), Condvar::new());
        let take_turn = |mine: u32| {
            let mut now = next.lock();
            while *now != mine {
                changed.wait(&mut now);
            }
            *now += 1;
            changed.notify_all();
        };
        std::thread::scope(|threads| {
            for first in 0..4 {
                threads.spawn(move || (0..500).for_each(|round| take_turn(first + 4 * round)));
            }
        });
        assert_eq!(next.into_inner(), 2_000);
    }

    #[test]
    fn a_thread_that_is_not_notified_wakes_up_at_the_timeout() {
        let mutex = Mutex::new(());
        Condvar::new().wait_for(&mut mutex.lock(), Duration::from_millis(1));
    }
}
