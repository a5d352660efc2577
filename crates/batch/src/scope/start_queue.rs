//! The order in which the items of a scope start.

use std::collections::VecDeque;

/// Who starts next: those that met a 429 first, in the order in which they did, then those that came.
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
    /// A new item, behind all others.
    pub fn put(&mut self, item: T) {
        self.fresh.push_back(item);
    }

    /// An item that met a 429: behind those that did before.
    pub fn park(&mut self, item: T) {
        self.parked.push_back(item);
    }

    /// An item that failed as all others do: behind those that are parked, and the next is one that has not been called yet.
    pub fn park_behind(&mut self, item: T) {
        self.parked.push_back(item);
        if let Some(fresh) = self.fresh.pop_front() {
            self.parked.push_front(fresh);
        }
    }

    /// Makes the first that is parked and that `chosen` names the next. Returns whether there is one.
    pub fn bring_forward(&mut self, chosen: impl FnMut(&T) -> bool) -> bool {
        let found = self.parked.iter().position(chosen).and_then(|at| self.parked.remove(at));
        let is_found = found.is_some();
        found.into_iter().for_each(|item| self.parked.push_front(item));
        is_found
    }

    /// An item that was the next and could not start after all.
    pub fn put_back(&mut self, item: T) {
        self.parked.push_front(item);
    }

    /// The next, which stays.
    pub fn peek(&self) -> Option<&T> {
        self.parked.front().or_else(|| self.fresh.front())
    }

    /// The next; whether it was parked comes with it.
    pub fn take(&mut self) -> Option<(T, bool)> {
        let parked = self.parked.pop_front().map(|item| (item, true));
        parked.or_else(|| self.fresh.pop_front().map(|item| (item, false)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parked.len() + self.fresh.len()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many are parked.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }

    /// Takes out those that `gone` names.
    pub fn remove(&mut self, mut gone: impl FnMut(&T) -> bool) {
        self.parked.retain(|item| !gone(item));
        self.fresh.retain(|item| !gone(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parked_items_go_first_and_in_order() {
        let mut line = StartQueue::default();
        (0..3).for_each(|item| line.put(item));
        line.park(10);
        line.park(11);
        line.put_back(9);
        assert_eq!((line.len(), line.parked()), (6, 3));
        assert!(line.bring_forward(|item| *item == 11) && !line.bring_forward(|item| *item == 1));
        line.park_behind(8);
        let order: Vec<i32> = std::iter::from_fn(|| line.take().map(|(item, _)| item)).collect();
        assert_eq!(order, [0, 11, 9, 10, 8, 1, 2]);
    }
}
