//! Saturation: the instants at which the provider had nothing left, and what it let pass since.

use tollgate::{Span, Tick};

use super::{Load, PaceRate};

/// In a silence, this many calls would have passed if the limit were refilled steadily.
const SILENT_CALLS: u64 = 3;

/// By how much advice is rounded up at most.
const ROUNDED_UP: Span = Span::from_secs(1);

/// Starts so far, in calls and in tokens.
pub(super) type StartCounts = [u64; 2];

/// A refused call: at its start the provider had nothing left.
///
/// What passes between two such instants, over the time between them, is the rate at which the
/// provider's bucket is refilled, however large it is. That holds unless the bucket was full in
/// between, and then the result is too low, never too high.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saturation {
    at: Tick,
    before: StartCounts,
    /// What was refused since, this call included.
    rejected: StartCounts,
    /// The last call that was refused since, and what had been refused before it.
    last: (Tick, StartCounts, StartCounts),
    /// When the first call started that passed since, and the last one of those that were refused
    /// before it.
    passed_at: Option<Tick>,
    silent_until: Tick,
}

/// What passed between two saturations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) amount: u64,
    pub(super) span: Span,
    /// True if the limit was refilled at the end of a window, not steadily.
    pub(super) is_window: bool,
    /// True if the rate is right although the bucket may have been full in between.
    pub(super) is_exact: bool,
}

impl Measured {
    pub(super) fn rate(self) -> PaceRate {
        PaceRate::of(self.amount, self.span)
    }
}

impl Saturation {
    pub(super) fn new(at: Tick, before: StartCounts, load: Load) -> Saturation {
        Saturation {
            at,
            before,
            rejected: load.sums(),
            last: (at, before, [0; 2]),
            passed_at: None,
            silent_until: at,
        }
    }

    /// Counts a refusal that is no evidence of a saturation.
    pub(super) fn discount(&mut self, load: Load) {
        for (sum, more) in self.rejected.iter_mut().zip(load.sums()) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Counts the refusal of a call that started after this one.
    pub(super) fn reject(&mut self, at: Tick, before: StartCounts, load: Load) {
        if at > self.last.0 {
            self.last = (at, before, self.rejected);
        }
        if self.passed_at.is_none_or(|passed| at < passed) {
            self.silent_until = self.silent_until.max(at);
        }
        self.discount(load);
    }

    /// Records the advice of the provider that nothing passes for this long. It may be rounded up.
    pub(super) fn advise(&mut self, advice: Span) {
        self.silent_until = self.silent_until.max(self.at + advice - ROUNDED_UP);
    }

    /// Records that a call passed that started after this one.
    pub(super) fn pass(&mut self, at: Tick) {
        let first = self.passed_at.map_or(at, |passed| passed.min(at));
        self.passed_at = Some(first);
        self.silent_until = self.silent_until.min(first);
    }

    /// Returns how long nothing passed, if a steadily refilled limit of this rate would have let
    /// calls pass by then: such a limit is refilled at the end of a window.
    pub(super) fn silence(&self, rate: PaceRate) -> Option<Span> {
        let is_window = rate.amount_in(self.silent_until.since(self.at)) >= SILENT_CALLS;
        self.passed_at.filter(|_| is_window).map(|passed| passed.since(self.at))
    }

    /// Returns the number of this call.
    pub(super) fn number(&self) -> u64 {
        self.before[0]
    }

    /// Returns the number of the first call that started after the last refusal since.
    pub(super) fn next(&self) -> u64 {
        self.last.1[0] + 1
    }

    /// Returns how many calls were refused since, this one included.
    pub(super) fn refusals(&self) -> u64 {
        self.rejected[0]
    }

    /// Returns true if a call belongs to this saturation: `before` had started when it did. Calls that start at one instant may arrive
    /// in any order, so their numbers decide, not the time.
    pub(super) fn precedes(&self, before: StartCounts) -> bool {
        before[0] >= self.before[0]
    }

    /// Returns what passed from here to a later saturation.
    pub(super) fn until(&self, later: &Saturation, unit: usize) -> Measured {
        let started = later.before[unit].saturating_sub(self.before[unit]);
        let amount = started.saturating_sub(self.rejected[unit]);
        Measured { amount, span: later.at.since(self.at), is_window: false, is_exact: false }
    }

    /// Returns what passed from here to the last refusal since.
    pub(super) fn tail(&self, unit: usize) -> Measured {
        let (at, before, rejected) = self.last;
        let started = before[unit].saturating_sub(self.before[unit]);
        Measured {
            amount: started.saturating_sub(rejected[unit]),
            span: at.since(self.at),
            is_window: false,
            is_exact: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_between_two_refusals_is_counted_in_any_order_of_replies() {
        let load = Load::tokens(100);
        let mut first = Saturation::new(Tick::from_secs(1), [10, 1_000], load);
        first.reject(Tick::from_secs(3), [30, 3_000], load);
        first.reject(Tick::from_secs(2), [20, 2_000], load);
        let second = Saturation::new(Tick::from_secs(6), [60, 6_000], load);
        assert_eq!(
            first.until(&second, 0),
            Measured { amount: 47, span: Span::from_secs(5), is_window: false, is_exact: false }
        );
        assert_eq!(first.until(&second, 1).amount, 4_700);
        assert_eq!(
            first.tail(0),
            Measured { amount: 19, span: Span::from_secs(2), is_window: false, is_exact: false }
        );
    }

    #[test]
    fn of_calls_that_start_at_one_instant_the_number_decides_which_came_later() {
        let refused = Saturation::new(Tick::from_secs(1), [10, 0], Load::tokens(0));
        assert!(!refused.precedes([9, 0]), "it started before");
        assert!(refused.precedes([10, 0]) && refused.precedes([11, 0]));
    }
}
