//! The history: the last calls that started, and which of them were refused.

use std::collections::VecDeque;
use std::ops::Range;

use tollgate::{Span, Tick};

use super::PaceRate;

/// How many calls the history holds.
const HISTORY_MAX: usize = 2_048;

/// How many calls determine how fast calls start.
const RATED: usize = 24;

/// A longer pause is no evidence of how fast calls start: it was advised, or an outage.
const PAUSE_MAX: Span = Span::from_secs(2);

/// The numbers of calls over which the fastest rate is searched.
const WINDOWS: [u64; 6] = [16, 32, 64, 128, 256, 512];

#[derive(Clone, Copy, Debug)]
struct Started {
    at: Tick,
    is_refused: bool,
    /// True if no call had started for a while, for a reason that is not evidence about the pace.
    after_pause: bool,
}

/// The last calls that started, each by its number.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The number of the first call in the history.
    first: u64,
    starts: VecDeque<Started>,
}

impl History {
    /// Records the start of a call, which may be the first after a pause.
    pub(super) fn start(&mut self, at: Tick, after_pause: bool) {
        if self.starts.len() == HISTORY_MAX {
            self.starts.pop_front();
            self.first += 1;
        }
        self.starts.push_back(Started { at, is_refused: false, after_pause });
    }

    /// Records that a call was refused.
    pub(super) fn refuse(&mut self, number: u64) {
        let start =
            number.checked_sub(self.first).and_then(|at| self.starts.get_mut(usize::try_from(at).ok()?));
        if let Some(start) = start {
            start.is_refused = true;
        }
    }

    /// Returns how many of these calls were refused, and how many of them the history holds.
    pub(super) fn refused(&self, calls: Range<u64>) -> (u64, u64) {
        let at = |number: u64| {
            usize::try_from(number.saturating_sub(self.first))
                .map_or(self.starts.len(), |at| at.min(self.starts.len()))
        };
        let (from, to) = (at(calls.start), at(calls.end.max(calls.start)));
        let refused = self.starts.range(from..to).filter(|start| start.is_refused).count();
        (refused as u64, (to - from) as u64)
    }

    /// Returns true if the history holds the call with this number.
    pub(super) fn contains(&self, number: u64) -> bool {
        number >= self.first
    }

    /// Returns the number of the first of these calls that was not refused.
    pub(super) fn first_passed(&self, mut calls: Range<u64>) -> Option<u64> {
        calls.find(|number| {
            let at = number.checked_sub(self.first).and_then(|at| self.starts.get(usize::try_from(at).ok()?));
            at.is_some_and(|start| !start.is_refused)
        })
    }

    /// Returns the number of the first call that started at this time or later.
    pub(super) fn since(&self, at: Tick) -> u64 {
        self.first + self.starts.partition_point(|start| start.at < at) as u64
    }

    /// Returns how fast the calls before this number started, without long pauses.
    pub(super) fn rate(&self, before: u64) -> PaceRate {
        let end = usize::try_from(before.saturating_sub(self.first))
            .map_or(self.starts.len(), |end| end.min(self.starts.len()));
        let (mut calls, mut span) = (0, 0);
        for at in end.saturating_sub(RATED)..end.saturating_sub(1) {
            let (one, next) = (self.starts[at], self.starts[at + 1]);
            let gap = next.at.since(one.at);
            let gap = if next.after_pause { gap.min(PAUSE_MAX) } else { gap };
            (calls, span) = (calls + 1, span + gap.as_micros());
        }
        PaceRate::of(calls.max(1), Span::from_micros(span.max(1)))
    }

    /// Returns how fast these calls passed, and how many passed.
    pub(super) fn passed(&self, calls: Range<u64>) -> (PaceRate, u64) {
        let span = self.span(calls.start, calls.end.saturating_sub(1)).max(Span::from_micros(1));
        let (refused, all) = self.refused(calls);
        let passed = all.saturating_sub(refused).max(1);
        (PaceRate::of(passed, span), passed)
    }

    /// Returns the fastest that calls passed before the last of these, which was refused, where
    /// `burst` calls may pass at once: a bucket that was full at some time since is refilled no
    /// faster, and hardly slower, because the call before passed.
    pub(super) fn fastest(&self, calls: Range<u64>, burst: u64) -> Option<(u64, Span)> {
        let from = WINDOWS.map(|window| calls.end.saturating_sub(window)).into_iter();
        let passed = from.filter(|from| *from >= calls.start.max(self.first)).map(|from| {
            let (refused, all) = self.refused(from..calls.end);
            (all.saturating_sub(refused + burst.saturating_sub(1)), self.span(from, calls.end))
        });
        passed
            .filter(|(_, span)| *span > Span::ZERO)
            .max_by_key(|(amount, span)| PaceRate::of(*amount, *span))
    }

    /// Returns when a call started, if the history holds it.
    fn at(&self, number: u64) -> Option<Tick> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.starts.get(at).map(|start| start.at)
    }

    /// Returns the time from the start of one call to the start of another.
    pub(super) fn span(&self, from: u64, to: u64) -> Span {
        self.at(from.max(self.first)).zip(self.at(to)).map_or(Span::ZERO, |(from, to)| to.since(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_the_refused_calls_that_it_holds() {
        let mut history = History::default();
        for at in 0..HISTORY_MAX as u64 + 10 {
            history.start(Tick::from_secs(at), false);
        }
        for number in [3, 10, 12, 15] {
            history.refuse(number);
        }
        assert!(!history.contains(9) && history.contains(10));
        assert_eq!(history.refused(0..20), (3, 10), "the history does not hold the first ten");
        assert_eq!(history.refused(12..12), (0, 0));
        assert_eq!(history.first_passed(10..20), Some(11));
        assert_eq!(history.since(Tick::from_secs(15)), 15);
        assert_eq!(history.passed(10..20), (PaceRate::of(7, Span::from_secs(9)), 7));
        assert_eq!(history.rate(100), PaceRate::of(1, Span::from_secs(1)));
        history.start(Tick::from_secs(10_000), true);
        assert_eq!(
            history.rate(HISTORY_MAX as u64 + 11),
            PaceRate::of(23, Span::from_secs(24)),
            "two seconds of the pause count"
        );
    }
    #[test]
    fn the_fastest_rate_before_a_refusal_excludes_the_burst_of_a_full_bucket() {
        let mut history = History::default();
        // Forty calls in forty seconds, then twenty in ten, after which one is refused.
        for number in 0..40 {
            history.start(Tick::from_secs(number), false);
        }
        for number in 0..=20 {
            history.start(Tick::from_millis(40_000 + number * 500), false);
        }
        history.refuse(60);
        assert_eq!(history.fastest(1..60, 1), Some((16, Span::from_secs(8))));
        assert_eq!(history.fastest(1..60, 3), Some((14, Span::from_secs(8))), "three passed at once");
        assert_eq!(history.fastest(50..60, 1), None, "too few");
    }
}
