//! Counters of failed attempts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ServiceError;

/// How many attempts failed since the store was opened, by reason, also where a later attempt succeeded.
///
/// ```no_run
/// # async fn count() -> Result<(), tollgate_dynamo::DynamoOpenError> {
/// use tollgate_dynamo::{DynamoStore, ServiceErrorCounts};
///
/// let store = DynamoStore::builder("limits").build().await?;
/// let counts: ServiceErrorCounts = store.error_counts();
/// println!("{} attempts were throttled, {} calls were retried", counts.throttled, counts.retries);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceErrorCounts {
    /// [`ServiceError::Throttled`].
    pub throttled: u64,
    /// [`ServiceError::Conflict`] and [`ServiceError::InProgress`].
    pub conflicts: u64,
    /// [`ServiceError::Unprocessed`].
    pub unprocessed: u64,
    /// [`ServiceError::Server`].
    pub server: u64,
    /// [`ServiceError::Timeout`].
    pub timeouts: u64,
    /// [`ServiceError::Lost`].
    pub lost: u64,
    /// [`ServiceError::Skewed`].
    pub skewed: u64,
    /// Errors that do not pass: a missing table or permission, a call that is not valid.
    pub refused: u64,
    /// How many calls were retried.
    pub retries: u64,
}

const KINDS: usize = 9;
const REFUSED: usize = 7;
const RETRIES: usize = 8;

/// The counters behind [`ServiceErrorCounts`].
#[derive(Debug, Default)]
pub(crate) struct ServiceErrorCounters([AtomicU64; KINDS]);

impl ServiceErrorCounters {
    pub(crate) fn record(&self, error: &ServiceError) {
        let kind = match error {
            ServiceError::Throttled => 0,
            ServiceError::Conflict | ServiceError::InProgress => 1,
            ServiceError::Unprocessed => 2,
            ServiceError::Server(_) => 3,
            ServiceError::Timeout => 4,
            ServiceError::Lost(_) => 5,
            ServiceError::Skewed => 6,
            _ => REFUSED,
        };
        self.0[kind].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn retried(&self) {
        self.0[RETRIES].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn error_counts(&self) -> ServiceErrorCounts {
        let [throttled, conflicts, unprocessed, server, timeouts, lost, skewed, refused, retries] =
            self.0.each_ref().map(|count| count.load(Ordering::Relaxed));
        ServiceErrorCounts {
            throttled,
            conflicts,
            unprocessed,
            server,
            timeouts,
            lost,
            skewed,
            refused,
            retries,
        }
    }
}
