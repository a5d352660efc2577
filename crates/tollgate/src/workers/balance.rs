//! Which worker a job is handed to.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Which worker a job is handed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Any.
    Random,
    /// The one with the fewest jobs waiting and running; the first of several.
    LeastActive,
    /// The one that was handed the fewest jobs so far; the first of several.
    LeastTotal,
}

/// What a worker has to do, and had.
#[derive(Default)]
pub(super) struct Load {
    /// Jobs in its line, on their way there, and running.
    pub(super) active: AtomicUsize,
    /// Jobs that it was handed so far.
    pub(super) total: AtomicUsize,
}

impl Load {
    pub(super) fn add(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn done(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Balance {
    /// The worker for the next job, of those that are open.
    pub(super) fn choose(
        self,
        loads: &[Load],
        turn: &AtomicUsize,
        is_open: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let open: Vec<usize> = (0..loads.len()).filter(|index| is_open(*index)).collect();
        let nth = |number: usize| number.checked_rem(open.len()).map(|place| open[place]);
        let least = |of: fn(&Load) -> &AtomicUsize| {
            open.iter().copied().min_by_key(|index| of(&loads[*index]).load(Ordering::Relaxed))
        };
        match self {
            Balance::RoundRobin => nth(turn.fetch_add(1, Ordering::Relaxed)),
            Balance::Random => nth(crate::pool::random()),
            Balance::LeastActive => least(|load| &load.active),
            Balance::LeastTotal => least(|load| &load.total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(balance: Balance, loads: &[Load], times: usize, open: impl Fn(usize) -> bool) -> Vec<usize> {
        let turn = AtomicUsize::new(0);
        let choose = |_| balance.choose(loads, &turn, &open).inspect(|index| loads[*index].add());
        (0..times).filter_map(choose).collect()
    }

    fn loads() -> Vec<Load> {
        (0..3).map(|_| Load::default()).collect()
    }

    #[test]
    fn each_policy_chooses_as_it_says() {
        assert_eq!(chosen(Balance::RoundRobin, &loads(), 5, |_| true), [0, 1, 2, 0, 1]);
        assert_eq!(chosen(Balance::RoundRobin, &loads(), 4, |index| index != 1), [0, 2, 0, 2]);
        let busy = loads();
        (0..5).for_each(|_| busy[0].add());
        assert_eq!(chosen(Balance::LeastActive, &busy, 4, |_| true), [1, 2, 1, 2]);
        (0..5).for_each(|_| busy[0].done());
        assert_eq!(chosen(Balance::LeastActive, &busy, 1, |_| true), [0], "it has done them");
        assert_eq!(chosen(Balance::LeastTotal, &busy, 2, |_| true), [1, 2], "but it had more so far");
        let seen: std::collections::BTreeSet<_> =
            chosen(Balance::Random, &loads(), 1_000, |_| true).into_iter().collect();
        assert_eq!(seen.len(), 3);
        assert!(chosen(Balance::Random, &loads(), 3, |_| false).is_empty());
    }
}
