//! The mutex that everything here is built on: [ours](tollgate_sys::Mutex), or loom's when its model checker runs the tests.

#[cfg(not(loom))]
pub(crate) use tollgate_sys::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use model::{Mutex, MutexGuard, order_of};

/// Where a mutex stands in the order in which several are locked.
#[cfg(not(loom))]
pub(crate) fn order_of<T>(mutex: &Mutex<T>) -> usize {
    std::ptr::from_ref(mutex).addr()
}

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::MutexGuard;

    use std::sync::atomic::{AtomicUsize, Ordering};

    /// loom's mutex with the signature of ours.
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
