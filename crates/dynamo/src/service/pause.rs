//! How long to wait before another try.

use std::time::Duration;

use crate::ServiceError;

/// How often to try, and how long to wait in between.
#[derive(Clone, Copy, Debug)]
struct RetrySchedule {
    tries: u32,
    /// What the first pause is at most. The next ones are twice as long each.
    first: Duration,
    /// What any pause is at most.
    longest: Duration,
}

/// Another transaction is over in milliseconds, and says nothing about the service: it is waited for often and briefly.
const CONFLICT: RetrySchedule =
    RetrySchedule { tries: 40, first: Duration::from_millis(5), longest: Duration::from_millis(100) };

/// How often to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    /// How often at most, when the service is in trouble.
    pub(crate) tries: u32,
}

/// How often was tried, and what for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tried {
    troubles: u32,
    conflicts: u32,
}

impl Tried {
    /// How long to wait after another try that failed like this; `None` if that was the last.
    pub(crate) fn pause(&mut self, trouble: &ServiceError, patience: RetryPolicy) -> Option<Duration> {
        if !trouble.is_passing() {
            return None;
        }
        let (tried, course) = match trouble {
            ServiceError::Conflict | ServiceError::InProgress => (&mut self.conflicts, CONFLICT),
            _ => (&mut self.troubles, patience.course()),
        };
        *tried += 1;
        (*tried < course.tries).then(|| course.most(*tried - 1).mul_f64(fraction()))
    }
}

impl RetryPolicy {
    fn course(self) -> RetrySchedule {
        RetrySchedule { tries: self.tries, first: Duration::from_millis(20), longest: Duration::from_secs(1) }
    }
}

impl RetrySchedule {
    /// What the pause after this round is at most.
    fn most(self, round: u32) -> Duration {
        self.first.saturating_mul(1 << round.min(16)).min(self.longest)
    }
}

/// Anything from 0 to 1: those who failed together must not come back together.
fn fraction() -> f64 {
    // Without randomness half of the pause will do.
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(random) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: RetryPolicy = RetryPolicy { tries: 5 };

    #[test]
    fn tries_are_bounded_and_pauses_grow() {
        let mut tried = Tried::default();
        let pauses: Vec<_> = std::iter::from_fn(|| tried.pause(&ServiceError::Throttled, PATIENCE)).collect();
        assert_eq!(pauses.len(), 4);
        for (round, pause) in pauses.into_iter().enumerate() {
            assert!(pause <= Duration::from_millis(20 << round), "{pause:?}");
        }
        assert_eq!(PATIENCE.course().most(40), Duration::from_secs(1));
    }

    #[test]
    fn a_conflict_is_no_trouble_of_the_service() {
        let mut tried = Tried::default();
        let conflicts = std::iter::from_fn(|| tried.pause(&ServiceError::Conflict, PATIENCE)).count();
        assert_eq!(conflicts, CONFLICT.tries as usize - 1);
        assert!(tried.pause(&ServiceError::Server(500), PATIENCE).is_some());
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        assert_eq!(Tried::default().pause(&ServiceError::NoCredentials, PATIENCE), None);
    }
}
