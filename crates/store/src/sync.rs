//! The mutex that everything here is built on: std's, or loom's when its model checker runs the tests.
//!
//! std's is one word on which the system lets threads sleep. One that keeps its sleepers in a table of the process, as
//! parking_lot's does, leaves those of the parent in the table of a process that was forked off, whose next sleeper may get
//! the memory of one of them.

#[cfg(not(loom))]
pub(crate) use real::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use model::{Mutex, MutexGuard, order_of};

/// Where a mutex stands in the order in which several are locked.
#[cfg(not(loom))]
pub(crate) fn order_of<T>(mutex: &Mutex<T>) -> usize {
    std::ptr::from_ref(mutex).addr()
}

#[cfg(not(loom))]
mod real {
    pub(crate) use std::sync::MutexGuard;
    use std::sync::{PoisonError, TryLockError};

    /// std's mutex without poison: what is guarded here is whole at every point where something may panic.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Mutex<T> {
            Mutex(std::sync::Mutex::new(value))
        }

        #[inline]
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Locks it, unless it is locked.
        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }
}

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::MutexGuard;

    use std::sync::atomic::{AtomicUsize, Ordering};

    /// loom's mutex with parking_lot's signature.
    pub(crate) struct Mutex<T> {
        inner: loom::sync::Mutex<T>,
        /// Addresses differ from one run of a model to the next, and loom wants the runs alike.
        serial: usize,
    }

    pub(crate) fn order_of<T>(mutex: &Mutex<T>) -> usize {
        mutex.serial
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            static MADE: AtomicUsize = AtomicUsize::new(0);
            let serial = MADE.fetch_add(1, Ordering::Relaxed);
            Mutex { inner: loom::sync::Mutex::new(value), serial }
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.inner.lock().expect("no test panics with the lock held")
        }
    }

    impl<T> Mutex<T> {
        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.inner.try_lock().ok()
        }
    }

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Mutex<T> {
            Mutex::new(T::default())
        }
    }
}
