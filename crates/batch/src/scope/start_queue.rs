//! The queue of the items that wait to start in a scope.

use std::collections::VecDeque;

/// A queue of items: those that met a 429 first, in the order in which they did, then new ones in
/// the order of the input.
///
/// ```
/// use tollgate_batch::scope::StartQueue;
///
/// let mut queue = StartQueue::default();
/// ["a", "b"].into_iter().for_each(|item| queue.put(item));
/// queue.park("c");
/// assert_eq!((queue.take(), queue.take()), (Some(("c", true)), Some(("a", false))));
/// ```
#[derive(Clone, Debug)]
pub struct StartQueue<T> {
    parked: VecDeque<T>,
    fresh: VecDeque<T>,
}

impl<T> Default for StartQueue<T> {
    fn default() -> StartQueue<T> {
        StartQueue { parked: VecDeque::new(), fresh: VecDeque::new() }
    }
}

impl<T> StartQueue<T> {
    /// Adds a new item behind all others.
    pub fn put(&mut self, item: T) {
        self.fresh.push_back(item);
    }

    /// Adds an item that met a 429 behind those that did before.
    pub fn park(&mut self, item: T) {
        self.parked.push_back(item);
    }

    /// Adds an item that failed as all others do behind the parked ones, and makes a new item the
    /// head.
    pub fn park_behind(&mut self, item: T) {
        self.parked.push_back(item);
        if let Some(fresh) = self.fresh.pop_front() {
            self.parked.push_front(fresh);
        }
    }

    /// Makes the first parked item for which `chosen` returns true the head. Returns true if there
    /// is one.
    pub fn bring_forward(&mut self, chosen: impl FnMut(&T) -> bool) -> bool {
        let found = self.parked.iter().position(chosen).and_then(|at| self.parked.remove(at));
        let is_found = found.is_some();
        found.into_iter().for_each(|item| self.parked.push_front(item));
        is_found
    }

    /// Puts back an item that was the head and could not start.
    pub fn put_back(&mut self, item: T) {
        self.parked.push_front(item);
    }

    /// Returns the head without removing it.
    pub fn peek(&self) -> Option<&T> {
        self.parked.front().or_else(|| self.fresh.front())
    }

    /// Removes and returns the head, with true if it was parked.
    pub fn take(&mut self) -> Option<(T, bool)> {
        let parked = self.parked.pop_front().map(|item| (item, true));
        parked.or_else(|| self.fresh.pop_front().map(|item| (item, false)))
    }

    /// Returns how many items are queued.
    pub fn len(&self) -> usize {
        self.parked.len() + self.fresh.len()
    }

    /// Returns true if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many items are parked.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Removes the items for which `is_removed` returns true.
    pub fn remove(&mut self, mut is_removed: impl FnMut(&T) -> bool) {
        self.parked.retain(|item| !is_removed(item));
        self.fresh.retain(|item| !is_removed(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parked_items_go_first_and_in_order() {
        let mut queue = StartQueue::default();
        (0..3).for_each(|item| queue.put(item));
        queue.park(10);
        queue.park(11);
        queue.put_back(9);
        assert_eq!((queue.len(), queue.parked()), (6, 3));
        assert!(queue.bring_forward(|item| *item == 11) && !queue.bring_forward(|item| *item == 1));
        queue.park_behind(8);
        let order: Vec<i32> = std::iter::from_fn(|| queue.take().map(|(item, _)| item)).collect();
        assert_eq!(order, [0, 11, 9, 10, 8, 1, 2]);
    }
}
