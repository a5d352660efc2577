//! Times at which something about an item is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate::Tick;

use super::entry::ItemSlot;

/// How many may be there before it is worth looking which of them are of no use.
const SWEPT_FROM: usize = 256;

/// A time at which something about an item is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: Tick,
    pub(super) slot: ItemSlot,
    /// The item's index: a slot may have another item by then.
    pub(super) index: u64,
    pub(super) what: DueFor,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DueFor {
    Retry,
    /// The call of this number has taken too long.
    Attempt(u32),
    Item,
}

/// All that is due, the next first. What an item or a call leaves behind when it ends before its time stays until it is
/// swept, so ending one costs nothing.
#[derive(Debug, Default)]
pub(super) struct Dues(BinaryHeap<Reverse<Due>>);

impl Dues {
    pub(super) fn push(&mut self, due: Due) {
        self.0.push(Reverse(due));
    }

    /// Returns the next time at which something may be due.
    pub(super) fn next(&self) -> Option<Tick> {
        self.0.peek().map(|Reverse(due)| due.at)
    }

    /// Takes one that is due.
    pub(super) fn pop(&mut self, now: Tick) -> Option<Due> {
        self.0.peek().filter(|Reverse(due)| due.at <= now)?;
        self.0.pop().map(|Reverse(due)| due)
    }

    /// Drops what is of no use any more, if that is more than half: at most `useful_max` are of use.
    pub(super) fn sweep(&mut self, useful_max: usize, is_useful: impl Fn(&Due) -> bool) {
        if self.0.len() > SWEPT_FROM.max(2 * useful_max) {
            self.0.retain(|Reverse(due)| is_useful(due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(at: u64) -> Due {
        Due { at: Tick::from_secs(at), slot: 0, index: at, what: DueFor::Item }
    }

    #[test]
    fn what_is_of_no_use_is_swept_before_it_is_the_most() {
        let mut dues = Dues::default();
        for at in 0..10_000 {
            dues.push(due(at));
            // Every hundredth is of use.
            dues.sweep(100, |due| due.index % 100 == 0);
            assert!(dues.0.len() <= SWEPT_FROM, "{}", dues.0.len());
        }
        let useful =
            std::iter::from_fn(|| dues.pop(Tick::from_secs(20_000))).filter(|due| due.index % 100 == 0);
        assert!(useful.map(|due| due.index).eq((0..100).map(|at| at * 100)));
    }

    #[test]
    fn what_is_of_use_is_kept_and_comes_in_time() {
        let mut dues = Dues::default();
        (0..1_000).rev().for_each(|at| dues.push(due(at)));
        dues.sweep(1_000, |_| true);
        assert_eq!((dues.next(), dues.0.len()), (Some(Tick::ZERO), 1_000));
        assert_eq!((dues.pop(Tick::ZERO), dues.pop(Tick::ZERO)), (Some(due(0)), None));
    }
}
