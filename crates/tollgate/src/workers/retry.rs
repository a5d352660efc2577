//! Trying again: when, how often, and how long after.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How the pause grows from try to try.
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

/// Whether pauses are left to chance, so that those who failed together do not come back together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// As they are.
    None,
    /// Anything from nothing to the whole pause.
    #[default]
    Full,
}

type WantsMore<E> = dyn Fn(&E) -> bool + Send + Sync;
type IsValid<T> = dyn Fn(&T) -> bool + Send + Sync;

/// When a job is tried again. Between two tries it holds nothing: what it took of limits has ended with the try, and
/// what it answered is dropped before the pause.
///
/// ```
/// use std::time::Duration;
/// use tollgate::workers::{Backoff, Jitter, Retry};
///
/// let retry: Retry<u64, String> = Retry::times(3)
///     .backoff(Backoff::Fibonacci)
///     .pause(Duration::from_millis(100))
///     .jitter(Jitter::None)
///     .on_error(|error: &String| error.contains("busy"))
///     .until(|answer: &u64| *answer > 0);
/// assert_eq!(retry.pause_after(4), Duration::from_millis(300));
/// ```
pub struct Retry<T, E> {
    tries_max: u32,
    backoff: Backoff,
    jitter: Jitter,
    first: Duration,
    longest: Duration,
    on_error: Option<Arc<WantsMore<E>>>,
    is_valid: Option<Arc<IsValid<T>>>,
}

/// What to do about what came out of a try.
pub(super) enum RetryVerdict<T, E> {
    /// It counts.
    Keep(Result<T, E>),
    /// It was not valid, and was the last.
    Invalid,
    /// It is tried again. What came out is gone.
    Again,
}

impl<T, E> Retry<T, E> {
    /// Tries once, and never again.
    pub fn never() -> Retry<T, E> {
        Retry::times(0)
    }

    /// Tries again up to `retries` times, whatever the error, with exponential pauses of a second and more, up to a
    /// minute, and full jitter.
    pub fn times(retries: u32) -> Retry<T, E> {
        Retry {
            tries_max: retries.saturating_add(1),
            backoff: Backoff::default(),
            jitter: Jitter::default(),
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            on_error: None,
            is_valid: None,
        }
    }

    /// How pauses grow.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Retry { backoff, ..self }
    }

    /// Whether they are left to chance.
    #[must_use]
    pub fn jitter(self, jitter: Jitter) -> Self {
        Retry { jitter, ..self }
    }

    /// The first pause. By default a second.
    #[must_use]
    pub fn pause(self, first: Duration) -> Self {
        Retry { first, ..self }
    }

    /// The longest pause. By default a minute.
    #[must_use]
    pub fn longest(self, longest: Duration) -> Self {
        Retry { longest, ..self }
    }

    /// Tries again only after errors that this says yes to.
    #[must_use]
    pub fn on_error(self, wants_more: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        Retry { on_error: Some(Arc::new(wants_more)), ..self }
    }

    /// Tries again until this says yes to what came out.
    #[must_use]
    pub fn until(self, is_valid: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        Retry { is_valid: Some(Arc::new(is_valid)), ..self }
    }

    /// The pause after so many tries, before chance has its say.
    pub fn pause_after(&self, tries: u32) -> Duration {
        let factor = match self.backoff {
            Backoff::Linear => u64::from(tries),
            Backoff::Exponential => 1_u64.checked_shl(tries.saturating_sub(1)).unwrap_or(u64::MAX),
            Backoff::Fibonacci => fibonacci(tries),
        };
        let micros = u64::try_from(self.first.as_micros()).unwrap_or(u64::MAX).saturating_mul(factor);
        Duration::from_micros(micros).min(self.longest)
    }

    /// How long to pause after so many tries.
    pub(super) fn next_pause(&self, tries: u32) -> Duration {
        let pause = self.pause_after(tries);
        match self.jitter {
            Jitter::None => pause,
            Jitter::Full => {
                let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
                Duration::from_micros(crate::pool::random() as u64 % micros.saturating_add(1).max(1))
            }
        }
    }

    /// What to do about what came out of the `tries`th try.
    pub(super) fn judge(&self, tries: u32, result: Result<T, E>) -> RetryVerdict<T, E> {
        let may_try = tries < self.tries_max;
        match &result {
            Ok(value) => match &self.is_valid {
                Some(is_valid) if !is_valid(value) => {
                    if may_try {
                        RetryVerdict::Again
                    } else {
                        RetryVerdict::Invalid
                    }
                }
                _ => RetryVerdict::Keep(result),
            },
            Err(error) => {
                let wants_more = self.on_error.as_ref().is_none_or(|wants_more| wants_more(error));
                if may_try && wants_more { RetryVerdict::Again } else { RetryVerdict::Keep(result) }
            }
        }
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

impl<T, E> Clone for Retry<T, E> {
    fn clone(&self) -> Self {
        Retry { on_error: self.on_error.clone(), is_valid: self.is_valid.clone(), ..*self }
    }
}

impl<T, E> fmt::Debug for Retry<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("tries_max", &self.tries_max)
            .field("backoff", &self.backoff)
            .field("jitter", &self.jitter)
            .field("first", &self.first)
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_as_they_are_told_and_no_longer_than_the_longest() {
        let pauses = |backoff| {
            let retry: Retry<(), ()> = Retry::times(9).backoff(backoff).longest(Duration::from_secs(20));
            [1, 2, 3, 4, 5, 6, 7, 99, u32::MAX].map(|tries| retry.pause_after(tries).as_secs())
        };
        assert_eq!(pauses(Backoff::Linear), [1, 2, 3, 4, 5, 6, 7, 20, 20]);
        assert_eq!(pauses(Backoff::Exponential), [1, 2, 4, 8, 16, 20, 20, 20, 20]);
        assert_eq!(pauses(Backoff::Fibonacci), [1, 1, 2, 3, 5, 8, 13, 20, 20]);
    }

    #[test]
    fn full_jitter_is_anything_from_nothing_to_the_whole_pause() {
        let retry: Retry<(), ()> = Retry::times(1).pause(Duration::from_micros(3));
        let mut seen = std::collections::BTreeSet::new();
        // That one of four is missed a thousand times has a chance of 4 x 0.75^1000.
        seen.extend((0..1_000).map(|_| retry.next_pause(1).as_micros()));
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
