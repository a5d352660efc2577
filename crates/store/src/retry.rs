//! Retrying: how often a call is attempted, and how long the pauses in between are.

use std::time::Duration;

/// The growth of pauses with the number of failures.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::{Backoff, Jitter, Retry};
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

impl Backoff {
    /// Returns the pause after `failures` failures (1 is the first), without jitter: `first` times the factor of this
    /// backoff, and at most `longest`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate_store::Backoff;
    ///
    /// let [first, longest] = [50, 300].map(Duration::from_millis);
    /// let pauses = [1, 2, 3, 4].map(|failures| Backoff::Exponential.pause(first, longest, failures).as_millis());
    /// assert_eq!(pauses, [50, 100, 200, 300]);
    /// ```
    pub fn pause(self, first: Duration, longest: Duration, failures: u32) -> Duration {
        let factor = match self {
            Backoff::Linear => u64::from(failures),
            Backoff::Exponential => 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX),
            Backoff::Fibonacci => fibonacci(failures),
        };
        let micros = u64::try_from(first.as_micros()).unwrap_or(u64::MAX).saturating_mul(factor);
        Duration::from_micros(micros).min(longest)
    }
}

/// The randomisation of pauses, so that callers that failed together do not retry together.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::{Jitter, Retry};
///
/// let pause = |jitter| Retry::attempts(2).jitter(jitter).pause_after(1, 7).unwrap();
/// assert!(pause(Jitter::Full) <= Duration::from_secs(1));
/// assert!(pause(Jitter::Added) >= Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// The pause itself.
    None,
    /// Anything from zero to the pause.
    #[default]
    Full,
    /// The pause, and up to half of it more.
    Added,
}

/// A retry policy: how often a call is attempted, and how long the pauses in between are.
///
/// The jobs of a worker pool, the calls of a batch and the calls of stores to their servers are retried by it.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::{Backoff, Jitter, Retry};
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
    /// Returns the policy of one attempt and no retry.
    pub const fn never() -> Retry {
        Retry::attempts(1)
    }

    /// Returns the policy of `attempts` attempts in all, at least one, with exponential pauses from a second to a minute
    /// and full jitter.
    pub const fn attempts(attempts: u32) -> Retry {
        Retry {
            attempts: if attempts == 0 { 1 } else { attempts },
            backoff: Backoff::Exponential,
            jitter: Jitter::Full,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
        }
    }

    /// Sets the number of attempts, at least one.
    #[must_use]
    pub const fn with_attempts(self, attempts: u32) -> Retry {
        Retry { attempts: if attempts == 0 { 1 } else { attempts }, ..self }
    }

    /// Sets how pauses grow.
    #[must_use]
    pub const fn backoff(self, backoff: Backoff) -> Retry {
        Retry { backoff, ..self }
    }

    /// Sets how pauses are randomised.
    #[must_use]
    pub const fn jitter(self, jitter: Jitter) -> Retry {
        Retry { jitter, ..self }
    }

    /// Sets the first pause. By default it is a second.
    #[must_use]
    pub const fn pause(self, first: Duration) -> Retry {
        Retry { first, ..self }
    }

    /// Sets the longest pause, before jitter. By default it is a minute.
    #[must_use]
    pub const fn longest(self, longest: Duration) -> Retry {
        Retry { longest, ..self }
    }

    /// Returns the pause after `failures` attempts have failed, or `None` if that was the last attempt. `random` decides
    /// the jitter; see [`random_u64`](crate::random_u64).
    pub fn pause_after(&self, failures: u32, random: u64) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let pause = self.backoff.pause(self.first, self.longest, failures);
        let pause = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let up_to = |most: u64| random % most.saturating_add(1).max(1);
        Some(Duration::from_micros(match self.jitter {
            Jitter::None => pause,
            Jitter::Full => up_to(pause),
            Jitter::Added => pause.saturating_add(up_to(pause / 2)),
        }))
    }
}

fn fibonacci(number: u32) -> u64 {
    let (mut current, mut next) = (0_u64, 1_u64);
    // The 94th saturates, so more rounds would change nothing.
    for _ in 0..number.min(100) {
        (current, next) = (next, current.saturating_add(next));
    }
    current
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
