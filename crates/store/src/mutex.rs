//! A mutex and a condition variable that work in a process that was forked off.
//!
//! std's are one word each on which the system lets threads sleep. Those that keep their sleepers in a table of the process,
//! as parking_lot's do, leave those of the parent in the table of a process that was forked off: its next sleeper may
//! wait for a lock that no thread has, or get the memory of a thread that is not there.

pub use std::sync::MutexGuard;
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// std's mutex without poison: what is guarded here is whole at every point where something may panic.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Guards a value.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Locks it, and waits for as long as another thread has it locked.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks it, unless it is locked.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns what it guards.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what it guards; no lock is needed to reach what no other thread can.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// std's condition variable without poison.
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// One on which no thread sleeps.
    pub const fn new() -> Condvar {
        Condvar(std::sync::Condvar::new())
    }

    /// Unlocks the mutex, sleeps until it is notified, and locks it again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`wait`](Condvar::wait), and no longer than `most`.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, most: Duration) -> MutexGuard<'a, T> {
        self.0.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes one thread that sleeps on it.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that sleep on it.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
