//! Backoff of retries: exponential pauses with full jitter.

use std::time::Duration;

use crate::{Backoff, random_u64};

/// The pauses between the attempts of a call: each is twice as long as the one before, up to the longest.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::workers::RetryPauses;
///
/// let pauses = RetryPauses::new(Duration::from_millis(50), Duration::from_millis(300));
/// assert_eq!([0, 1, 2, 3, 4].map(|failures| pauses.after(failures).as_millis()), [0, 50, 100, 200, 300]);
/// assert!(pauses.random_after(3) <= pauses.after(3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RetryPauses {
    first: Duration,
    longest: Duration,
}

impl RetryPauses {
    /// Returns pauses from `first` to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> RetryPauses {
        RetryPauses { first, longest }
    }

    /// Returns the pause after so many failed attempts; zero after none.
    pub fn after(self, failures: u32) -> Duration {
        match failures {
            0 => Duration::ZERO,
            _ => Backoff::Exponential.pause(self.first, self.longest, failures),
        }
    }

    /// Returns a random part of that pause, so that callers that failed together do not retry together.
    pub fn random_after(self, failures: u32) -> Duration {
        let micros = u64::try_from(self.after(failures).as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(random_u64() % micros.saturating_add(1).max(1))
    }
}
