//! Values of which each process has its own, also a forked one.

use std::sync::OnceLock;

/// A value of which each process has its own.
///
/// A process that was forked off has the memory of its parent and none of its threads. A lock that one of them had at that moment
/// is locked for ever, and what it guards may be half done. So nothing of the parent's is touched: the values of processes
/// that were forked off from each other are a chain, and each goes to its own.
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
/// use tollgate_store::{PerProcess, generation};
///
/// let calls: PerProcess<Mutex<Vec<&str>>> = PerProcess::new(generation().into());
/// calls.get(generation().into()).lock().unwrap().push("of this process");
/// // A forked child has another number, and does not touch the lock of its parent.
/// let child = u64::from(generation()) + 1;
/// assert!(calls.get(child).lock().unwrap().is_empty());
/// ```
#[derive(Debug)]
pub struct PerProcess<T> {
    process: u64,
    value: T,
    of_a_fork: OnceLock<Box<PerProcess<T>>>,
}

impl<T> PerProcess<T> {
    /// Returns `value` for this process. Every process that is forked from it has another number.
    pub fn of(process: u64, value: T) -> PerProcess<T> {
        PerProcess { process, value, of_a_fork: OnceLock::new() }
    }

    /// Returns the value of this process; `fork` makes it of that of the process that it was forked from.
    #[inline]
    pub fn get_or(&self, process: u64, fork: impl Fn(&T) -> T) -> &T {
        if self.process == process { &self.value } else { self.of_a_fork(process, &fork) }
    }

    #[cold]
    fn of_a_fork(&self, process: u64, fork: &dyn Fn(&T) -> T) -> &T {
        let next = self.of_a_fork.get_or_init(|| Box::new(PerProcess::of(process, fork(&self.value))));
        next.get_or(process, fork)
    }
}

impl<T: Default> PerProcess<T> {
    /// Returns a default value for this process. Every process that is forked from it has another number.
    pub fn new(process: u64) -> PerProcess<T> {
        PerProcess::of(process, T::default())
    }

    /// Returns the value of this process. That of a forked process begins as the default.
    #[inline]
    pub fn get(&self, process: u64) -> &T {
        self.get_or(process, |_| T::default())
    }
}

impl<T> PerProcess<T> {
    /// Returns the values of the processes that this one was forked from, the eldest first. A lock in them may be locked for
    /// ever.
    pub fn inherited(&self, process: u64) -> impl Iterator<Item = &T> {
        let elders = std::iter::successors(Some(self), |elder| elder.of_a_fork.get().map(Box::as_ref));
        elders.take_while(move |elder| elder.process != process).map(|elder| &elder.value)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_process_that_was_forked_off_needs_no_lock_of_its_parent() {
        let lines: PerProcess<Mutex<u32>> = PerProcess::new(1);
        let mut parent = lines.get(1).lock().unwrap();
        *parent = 7;
        *lines.get(2).lock().unwrap() += 1;
        *lines.get(3).lock().unwrap() += 2;
        drop(parent);
        assert_eq!([1, 2, 3].map(|process| *lines.get(process).lock().unwrap()), [7, 1, 2]);
    }

    #[test]
    fn what_a_forked_process_has_is_made_of_what_its_parent_had() {
        let lines = PerProcess::of(1, 10);
        let next = |parent: &u32| parent + 1;
        assert_eq!([1, 2, 3, 2, 1].map(|process| *lines.get_or(process, next)), [10, 11, 12, 11, 10]);
    }

    #[test]
    fn a_process_that_was_forked_off_finds_the_values_of_its_elders() {
        let values: PerProcess<Mutex<u32>> = PerProcess::new(1);
        for process in [1, 2, 3] {
            *values.get(process).lock().unwrap() = u32::try_from(process).unwrap() * 10;
        }
        let inherited =
            |process| -> Vec<u32> { values.inherited(process).map(|value| *value.lock().unwrap()).collect() };
        assert_eq!([inherited(1), inherited(2), inherited(3)], [vec![], vec![10], vec![10, 20]]);
    }
}
