//! Timers of items: retries and deadlines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tollgate::Tick;

use super::entry::ItemSlot;

/// Below this number of timers, looking for stale ones is not worth its cost.
const SWEEP_MIN: usize = 256;

/// A timer of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ItemTimer {
    pub(super) at: Tick,
    pub(super) slot: ItemSlot,
    /// The index of the item. The slot may contain another item when the timer fires.
    pub(super) index: u64,
    pub(super) kind: TimerKind,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKind {
    Retry,
    /// The deadline of the call with this number.
    Attempt(u32),
    Item,
}

/// All timers, the earliest first. A timer of an item or call that has ended stays until it is
/// swept, so that ending one costs nothing.
#[derive(Debug, Default)]
pub(super) struct ItemTimers(BinaryHeap<Reverse<ItemTimer>>);

impl ItemTimers {
    pub(super) fn push(&mut self, timer: ItemTimer) {
        self.0.push(Reverse(timer));
    }

    /// Returns when the next timer fires.
    pub(super) fn next(&self) -> Option<Tick> {
        self.0.peek().map(|Reverse(timer)| timer.at)
    }

    /// Removes and returns a timer that is due.
    pub(super) fn pop(&mut self, now: Tick) -> Option<ItemTimer> {
        self.0.peek().filter(|Reverse(timer)| timer.at <= now)?;
        self.0.pop().map(|Reverse(timer)| timer)
    }

    /// Removes stale timers if they are more than half: at most `live_max` timers are live.
    pub(super) fn sweep(&mut self, live_max: usize, is_live: impl Fn(&ItemTimer) -> bool) {
        if self.0.len() > SWEEP_MIN.max(2 * live_max) {
            self.0.retain(|Reverse(timer)| is_live(timer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(at: u64) -> ItemTimer {
        ItemTimer { at: Tick::from_secs(at), slot: 0, index: at, kind: TimerKind::Item }
    }

    #[test]
    fn stale_timers_are_swept_before_they_are_the_majority() {
        let mut timers = ItemTimers::default();
        for at in 0..10_000 {
            timers.push(timer(at));
            // Every hundredth timer is live.
            timers.sweep(100, |timer| timer.index % 100 == 0);
            assert!(timers.0.len() <= SWEEP_MIN, "{}", timers.0.len());
        }
        let live =
            std::iter::from_fn(|| timers.pop(Tick::from_secs(20_000))).filter(|timer| timer.index % 100 == 0);
        assert!(live.map(|timer| timer.index).eq((0..100).map(|at| at * 100)));
    }

    #[test]
    fn live_timers_survive_a_sweep_and_fire_in_order() {
        let mut timers = ItemTimers::default();
        (0..1_000).rev().for_each(|at| timers.push(timer(at)));
        timers.sweep(1_000, |_| true);
        assert_eq!((timers.next(), timers.0.len()), (Some(Tick::ZERO), 1_000));
        assert_eq!((timers.pop(Tick::ZERO), timers.pop(Tick::ZERO)), (Some(timer(0)), None));
    }
}
