//! The mutex that everything here is built on: parking_lot's, or loom's when its model checker runs the tests.

#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use model::{Mutex, MutexGuard};

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::MutexGuard;

    /// loom's mutex with parking_lot's signature.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no test panics with the lock held")
        }
    }
}
