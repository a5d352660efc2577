//! Values that each process opens for itself: connections, threads, caches.

use std::ops::Deref;
use std::sync::Arc;

use crate::{PerProcess, generation};

/// A value that a process opens again when it is used there for the first time after a fork. Cloning shares it.
///
/// The parent's value is never used or dropped in a forked process: its runtime has no threads there that could be shut
/// down, and its connections are the parent's.
///
/// ```
/// use tollgate_store::workers::Reopened;
///
/// let process = Reopened::new(std::process::id(), std::process::id);
/// assert_eq!(*process, std::process::id());
/// ```
pub struct Reopened<T>(Arc<Inside<T>>);

struct Inside<T> {
    open: Box<dyn Fn() -> T + Send + Sync>,
    values: PerProcess<OfProcess<T>>,
}

/// A value that is dropped by the process that made it, and by no other.
struct OfProcess<T> {
    process: u32,
    /// There until it is dropped.
    value: Option<T>,
}

impl<T> Reopened<T> {
    /// Holds `value` in this process, and what `open` returns in a forked one.
    pub fn new(value: T, open: impl Fn() -> T + Send + Sync + 'static) -> Reopened<T> {
        let values = PerProcess::of(generation().into(), OfProcess::new(value));
        Reopened(Arc::new(Inside { open: Box::new(open), values }))
    }
}

impl<T> Deref for Reopened<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let Inside { open, values } = &*self.0;
        let this = values.get_or(generation().into(), |_| OfProcess::new(open()));
        this.value.as_ref().expect("it is there until it is dropped")
    }
}

impl<T> Clone for Reopened<T> {
    fn clone(&self) -> Reopened<T> {
        Reopened(Arc::clone(&self.0))
    }
}

impl<T> OfProcess<T> {
    fn new(value: T) -> OfProcess<T> {
        OfProcess { process: generation(), value: Some(value) }
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process != generation() {
            std::mem::forget(self.value.take());
        }
    }
}
