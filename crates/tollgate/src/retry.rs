//! Trying again: how often, and how long after.

use std::time::Duration;

/// How the pause grows from attempt to attempt.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Backoff, Jitter, Retry};
///
/// let retry = Retry::attempts(9).backoff(Backoff::Linear).jitter(Jitter::None);
/// assert_eq!(retry.pause_after(3, 0), Some(Duration::from_secs(3)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backoff {
    /// 1, 2, 3, 4 times the first pause.
    Linear,
    /// 1, 2, 4, 8 times the first pause.
    #[default]
    Exponential,
    /// 1, 1, 2, 3, 5 times the first pause.
    Fibonacci,
}

/// Whether pauses are left to chance, so that callers that failed together do not come back together.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Jitter, Retry};
///
/// let [full, added] = [Jitter::Full, Jitter::Added].map(|jitter| Retry::attempts(2).jitter(jitter).pause_after(1, 7).unwrap());
/// assert!(full <= Duration::from_secs(1) && added >= Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// As they are.
    None,
    /// Anything from nothing to the whole pause.
    #[default]
    Full,
    /// The whole pause, and up to half of it more.
    Added,
}

/// How often something is attempted, and how long the pauses in between are: for the jobs of a
/// pool of workers (feature `workers`), and for the calls of a batch.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Backoff, Jitter, Retry};
///
/// let retry = Retry::attempts(4).backoff(Backoff::Fibonacci).pause(Duration::from_millis(100)).jitter(Jitter::None);
/// let pauses = [1, 2, 3, 4].map(|failures| retry.pause_after(failures, 0));
/// let ms = |ms| Some(Duration::from_millis(ms));
/// assert_eq!(pauses, [ms(100), ms(100), ms(200), None]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
    backoff: Backoff,
    jitter: Jitter,
    first: Duration,
    longest: Duration,
}

impl Retry {
    /// One attempt, and no other.
    pub const fn never() -> Retry {
        Retry::attempts(1)
    }

    /// So many attempts in all, and at least one, with exponential pauses of a second and more, up to a minute, and full
    /// jitter.
    pub const fn attempts(attempts: u32) -> Retry {
        Retry {
            attempts: if attempts == 0 { 1 } else { attempts },
            backoff: Backoff::Exponential,
            jitter: Jitter::Full,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
        }
    }

    /// The same with another number of attempts.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Retry {
        Retry { attempts: attempts.max(1), ..self }
    }

    /// How pauses grow.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Retry {
        Retry { backoff, ..self }
    }

    /// Whether they are left to chance.
    #[must_use]
    pub fn jitter(self, jitter: Jitter) -> Retry {
        Retry { jitter, ..self }
    }

    /// The first pause. By default a second.
    #[must_use]
    pub fn pause(self, first: Duration) -> Retry {
        Retry { first, ..self }
    }

    /// The longest pause, before jitter. By default a minute.
    #[must_use]
    pub fn longest(self, longest: Duration) -> Retry {
        Retry { longest, ..self }
    }

    /// How long to pause after so many attempts have failed, with a random number to decide the jitter; `None` if that was
    /// the last attempt.
    pub fn pause_after(&self, failures: u32, random: u64) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let pause = u64::try_from(self.full_pause(failures).as_micros()).unwrap_or(u64::MAX);
        let up_to = |most: u64| random % most.saturating_add(1).max(1);
        Some(Duration::from_micros(match self.jitter {
            Jitter::None => pause,
            Jitter::Full => up_to(pause),
            Jitter::Added => pause.saturating_add(up_to(pause / 2)),
        }))
    }

    fn full_pause(&self, failures: u32) -> Duration {
        let factor = match self.backoff {
            Backoff::Linear => u64::from(failures),
            Backoff::Exponential => 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX),
            Backoff::Fibonacci => fibonacci(failures),
        };
        let micros = u64::try_from(self.first.as_micros()).unwrap_or(u64::MAX).saturating_mul(factor);
        Duration::from_micros(micros).min(self.longest)
    }
}

fn fibonacci(number: u32) -> u64 {
    let (mut one, mut next) = (0_u64, 1_u64);
    // Past this it stands at the largest number.
    for _ in 0..number.min(100) {
        (one, next) = (next, one.saturating_add(next));
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_by_their_backoff_and_no_longer_than_the_longest() {
        let pauses = |backoff| {
            let retry = Retry::attempts(u32::MAX).backoff(backoff).longest(Duration::from_secs(20));
            let retry = retry.jitter(Jitter::None);
            [1, 2, 3, 4, 5, 6, 7, 99, u32::MAX - 1]
                .map(|failures| retry.pause_after(failures, 7).unwrap().as_secs())
        };
        assert_eq!(pauses(Backoff::Linear), [1, 2, 3, 4, 5, 6, 7, 20, 20]);
        assert_eq!(pauses(Backoff::Exponential), [1, 2, 4, 8, 16, 20, 20, 20, 20]);
        assert_eq!(pauses(Backoff::Fibonacci), [1, 1, 2, 3, 5, 8, 13, 20, 20]);
    }

    #[test]
    fn the_last_attempt_has_no_pause_after_it() {
        for (attempts, pauses) in [(0, 0), (1, 0), (3, 2)] {
            let retry = Retry::attempts(attempts);
            assert_eq!((1..).map_while(|failures| retry.pause_after(failures, 0)).count(), pauses);
        }
    }

    #[test]
    fn jitter_takes_from_the_pause_or_adds_to_it() {
        let pauses = |jitter| {
            let retry = Retry::attempts(2).pause(Duration::from_micros(4)).jitter(jitter);
            let pauses = (0..100).map(|random| retry.pause_after(1, random).unwrap().as_micros());
            pauses.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(pauses(Jitter::None), [4]);
        assert_eq!(pauses(Jitter::Full), [0, 1, 2, 3, 4]);
        assert_eq!(pauses(Jitter::Added), [4, 5, 6]);
    }
}
