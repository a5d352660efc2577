//! When the provider was known to have nothing left, and what it let pass since.

use tollgate::{Span, Tick};

use super::{Load, Rate};

/// Starts so far, in calls and in tokens.
pub(super) type Sums = [u64; 2];

/// A call that was refused: at its start the provider had nothing left.
///
/// What passes between two such instants, over the time between them, is the rate at which the provider fills up, however
/// large its bucket is. That holds unless the bucket was full in between, and then the result is too low, never too high.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    at: Tick,
    before: Sums,
    /// What was refused since, this call included.
    rejected: Sums,
    /// The last call that was refused since, and what had been refused before it.
    last: (Tick, Sums, Sums),
}

/// What passed between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) amount: u64,
    pub(super) span: Span,
}

impl Measured {
    pub(super) fn rate(self) -> Rate {
        Rate::of(self.amount, self.span)
    }
}

impl Mark {
    pub(super) fn new(at: Tick, before: Sums, load: Load) -> Mark {
        Mark { at, before, rejected: load.sums(), last: (at, before, [0; 2]) }
    }

    /// Counts another refusal of a call that started after this one.
    pub(super) fn reject(&mut self, at: Tick, before: Sums, load: Load) {
        if at > self.last.0 {
            self.last = (at, before, self.rejected);
        }
        for (sum, more) in self.rejected.iter_mut().zip(load.sums()) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Whether a call that started then belongs to what followed.
    pub(super) fn precedes(&self, at: Tick) -> bool {
        at >= self.at
    }

    /// What passed from here to a later mark.
    pub(super) fn until(&self, later: &Mark, unit: usize) -> Measured {
        let started = later.before[unit].saturating_sub(self.before[unit]);
        let amount = started.saturating_sub(self.rejected[unit]);
        Measured { amount, span: later.at.since(self.at) }
    }

    /// What passed from here to the last refusal that followed.
    pub(super) fn tail(&self, unit: usize) -> Measured {
        let (at, before, rejected) = self.last;
        let started = before[unit].saturating_sub(self.before[unit]);
        Measured { amount: started.saturating_sub(rejected[unit]), span: at.since(self.at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_between_two_refusals_is_counted_in_whatever_order_they_are_told() {
        let load = Load::tokens(100);
        let mut first = Mark::new(Tick::from_secs(1), [10, 1_000], load);
        first.reject(Tick::from_secs(3), [30, 3_000], load);
        first.reject(Tick::from_secs(2), [20, 2_000], load);
        let second = Mark::new(Tick::from_secs(6), [60, 6_000], load);
        assert_eq!(first.until(&second, 0), Measured { amount: 47, span: Span::from_secs(5) });
        assert_eq!(first.until(&second, 1).amount, 4_700);
        assert_eq!(first.tail(0), Measured { amount: 19, span: Span::from_secs(2) });
    }
}
