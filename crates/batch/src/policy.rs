//! How often, how long, how much.

use std::time::Duration;

use tollgate::Span;

use crate::outcome::FailureClass;
use crate::random::JitterRandom;

/// How a class of failure is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
    first: Span,
    most: Span,
}

impl Retry {
    /// So many attempts in all, with nothing in between.
    pub const fn attempts(attempts: u32) -> Retry {
        Retry { attempts, first: Span::ZERO, most: Span::ZERO }
    }

    /// The same with a pause before the second attempt that doubles up to the longest, and up to half of it more by
    /// chance.
    #[must_use]
    pub fn backoff(self, first: Duration, most: Duration) -> Retry {
        Retry { first: Span::covering(first), most: Span::covering(most), ..self }
    }

    /// The same with another number of attempts.
    pub(crate) fn of_attempts(self, attempts: u32) -> Retry {
        Retry { attempts, ..self }
    }

    /// How long to pause after so many failures; `None` if that was the last attempt.
    pub(crate) fn pause(&self, failures: u32, random: &mut JitterRandom) -> Option<Span> {
        if failures >= self.attempts.max(1) {
            return None;
        }
        let factor = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
        let pause = self.first.as_micros().saturating_mul(factor).min(self.most.as_micros());
        Some(Span::from_micros(pause.saturating_add(random.next() % (pause / 2 + 1))))
    }
}

/// How a batch treats its items.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) overloaded: Retry,
    pub(crate) transient: Retry,
    pub(crate) invalid: Retry,
    pub(crate) throttle_budget: Span,
    pub(crate) slow_start: Option<Span>,
    pub(crate) attempt_deadline: Option<Span>,
    pub(crate) item_deadline: Option<Span>,
    pub(crate) batch_deadline: Option<Span>,
    pub(crate) tokens_max: Option<u64>,
    pub(crate) cost_micros_max: Option<u64>,
    pub(crate) stop_on: Vec<FailureClass>,
}

impl Default for Policy {
    fn default() -> Policy {
        let (second, half) = (Duration::from_secs(1), Duration::from_millis(500));
        Policy {
            overloaded: Retry::attempts(10).backoff(second, Duration::from_secs(60)),
            transient: Retry::attempts(5).backoff(half, Duration::from_secs(30)),
            invalid: Retry::attempts(3),
            throttle_budget: Span::from_secs(24 * 60 * 60),
            slow_start: None,
            attempt_deadline: None,
            item_deadline: None,
            batch_deadline: None,
            tokens_max: None,
            cost_micros_max: None,
            stop_on: Vec::new(),
        }
    }
}
