//! Outages: every call fails, and no item is to blame.
//!
//! A failed call is usually the fault of its item, or chance: other calls pass meanwhile. Only
//! calls that fail one after the other, with none that passes in between, indicate an outage. An
//! item that has failed before, while others passed, does not count: at the end of a batch only
//! such items may be left.

use tollgate::{Span, Tick};

/// This many failures in a row make an outage.
const FAILURES_MIN: u64 = 4;

/// Calls that fail with none that passes in between.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutageCircuit {
    run: Option<FailureRun>,
    /// How many runs of failures there were.
    runs: u64,
}

#[derive(Clone, Copy, Debug)]
struct FailureRun {
    /// When the first of the calls started, and when it failed.
    first: Tick,
    since: Tick,
    failures: u64,
}

impl OutageCircuit {
    /// Records the failure of a call that started at `at`. `is_blameless` is true if its item had
    /// not failed before this run.
    pub(super) fn fail(&mut self, now: Tick, at: Tick, is_blameless: bool) {
        if self.run.is_none() {
            self.runs += 1;
        }
        let run = self.run.get_or_insert(FailureRun { first: at, since: now, failures: 0 });
        run.failures += u64::from(is_blameless);
    }

    /// Returns the number of the current or last run.
    pub(super) fn run(&self) -> u64 {
        self.runs
    }

    /// Records that a call passed. One that started before the first failure proves nothing.
    pub(super) fn pass(&mut self, at: Tick) {
        self.run = self.run.filter(|run| at < run.first);
    }

    /// Returns since when every call fails, if there is an outage.
    pub(super) fn since(&self) -> Option<Tick> {
        self.run.filter(|run| run.failures >= FAILURES_MIN).map(|run| run.since)
    }

    /// Returns how long the outage has lasted.
    pub(super) fn lasts(&self, now: Tick) -> Option<Span> {
        self.since().map(|since| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Tick {
        Tick::from_secs(second)
    }

    #[test]
    fn calls_that_all_fail_make_an_outage_until_one_passes_that_started_later() {
        let mut outage = OutageCircuit::default();
        for second in 10..10 + FAILURES_MIN {
            assert_eq!(outage.lasts(at(20)), None);
            outage.fail(at(second), at(second - 1), true);
        }
        assert_eq!(outage.lasts(at(20)), Some(Span::from_secs(10)));
        outage.pass(at(8));
        assert!(outage.since().is_some(), "it started before the outage");
        outage.pass(at(13));
        assert_eq!(outage.since(), None);
    }

    #[test]
    fn calls_that_fail_now_and_then_are_chance() {
        let mut outage = OutageCircuit::default();
        for second in 10..100 {
            match second % FAILURES_MIN {
                0 => outage.pass(at(second)),
                _ => outage.fail(at(second), at(second), true),
            }
            assert_eq!(outage.since(), None);
        }
    }

    #[test]
    fn items_that_failed_before_make_no_outage() {
        let mut outage = OutageCircuit::default();
        (10..100).for_each(|second| outage.fail(at(second), at(second), false));
        assert_eq!(outage.since(), None);
    }
}
