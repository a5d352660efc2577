//! The attempts of one call: how many failed, and how long to pause before the next.

use std::time::Duration;

use tollgate_store::workers::{CallTimer, RetryPauses};

use crate::ServiceError;

/// How often to attempt a call, and how long to pause in between, before jitter.
#[derive(Clone, Copy, Debug)]
struct RetrySchedule {
    attempts: u32,
    pauses: RetryPauses,
}

/// Another transaction is over in milliseconds, and is no sign of an overloaded service: the pauses are many and short.
const CONFLICT: RetrySchedule = RetrySchedule {
    attempts: 40,
    pauses: RetryPauses::new(Duration::from_millis(5), Duration::from_millis(100)),
};

/// The pauses while the service fails.
const PAUSES: RetryPauses = RetryPauses::new(Duration::from_millis(20), Duration::from_secs(1));

/// How often a write is made anew because another writer wrote in between.
pub(super) const MISSES_MAX: u32 = 100;

/// After how many misses to pause.
const MISSES_AT_ONCE: u32 = 2;

/// The pauses after misses: the more clients write at once, the longer, until they write one after the other.
const MISS_PAUSES: RetryPauses = RetryPauses::new(Duration::from_millis(8), Duration::from_millis(250));

/// How often to attempt a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    /// How often at most, when the service fails.
    pub(crate) attempts: u32,
}

/// The attempts of one call so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    pub(super) timer: CallTimer,
    failures: u32,
    conflicts: u32,
    /// Writes whose condition did not hold, because another client wrote in between.
    pub(super) misses: u32,
}

impl Attempts {
    pub(crate) fn start() -> Attempts {
        Attempts { timer: CallTimer::start(), failures: 0, conflicts: 0, misses: 0 }
    }

    /// Starts to count anew, because some of a call was done. The time goes on.
    pub(crate) fn progress(&mut self) {
        *self = Attempts { timer: self.timer, ..Attempts::start() };
    }

    /// Returns how long to pause after another attempt that failed like this; `None` if that was the last.
    pub(super) fn pause(&mut self, error: &ServiceError, policy: RetryPolicy) -> Option<Duration> {
        if !error.is_passing() {
            return None;
        }
        let (failed, schedule) = match error {
            ServiceError::Conflict | ServiceError::InProgress => (&mut self.conflicts, CONFLICT),
            _ => (&mut self.failures, RetrySchedule { attempts: policy.attempts, pauses: PAUSES }),
        };
        *failed += 1;
        (*failed < schedule.attempts).then(|| schedule.pauses.random_after(*failed))
    }

    /// Counts a miss, and returns how long to pause.
    pub(super) fn miss(&mut self) -> Duration {
        self.misses += 1;
        MISS_PAUSES.random_after(self.misses.saturating_sub(MISSES_AT_ONCE))
    }

    /// Returns whether there is a pause after the last miss.
    pub(super) fn has_missed_often(&self) -> bool {
        self.misses > MISSES_AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy = RetryPolicy { attempts: 5 };

    #[test]
    fn tries_are_bounded_and_pauses_grow() {
        let mut attempts = Attempts::start();
        let pauses: Vec<_> =
            std::iter::from_fn(|| attempts.pause(&ServiceError::Throttled, POLICY)).collect();
        assert_eq!(pauses.len(), 4);
        for (round, pause) in pauses.into_iter().enumerate() {
            assert!(pause <= Duration::from_millis(20 << round), "{pause:?}");
        }
        assert_eq!(PAUSES.after(40), Duration::from_secs(1));
    }

    #[test]
    fn a_conflict_is_no_trouble_of_the_service() {
        let mut attempts = Attempts::start();
        let conflicts = std::iter::from_fn(|| attempts.pause(&ServiceError::Conflict, POLICY)).count();
        assert_eq!(conflicts, CONFLICT.attempts as usize - 1);
        assert!(attempts.pause(&ServiceError::Server(500), POLICY).is_some());
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        assert_eq!(Attempts::start().pause(&ServiceError::NoCredentials, POLICY), None);
    }
}
