//! Counters of failed attempts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ServerError;

/// How many attempts failed since a store was opened, by reason, also where a later attempt succeeded.
///
/// ```no_run
/// # async fn count() -> Result<(), tollgate_redis::RedisOpenError> {
/// use tollgate_redis::{RedisStore, ServerErrorCounts};
///
/// let store = RedisStore::builder("redis://127.0.0.1:6379").build().await?;
/// let counts: ServerErrorCounts = store.error_counts();
/// println!("{} attempts timed out, {} calls were retried", counts.timeouts, counts.retries);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerErrorCounts {
    /// Connections that broke or could not be made.
    pub connections: u64,
    /// Replies that did not come in time.
    pub timeouts: u64,
    /// Servers that could not serve: loading, replicas, a cluster in between.
    pub busy: u64,
    /// Scripts that had to be sent to a server again.
    pub scripts: u64,
    /// All other failures.
    pub others: u64,
    /// Calls that were retried.
    pub retries: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ServerErrorCounters {
    connections: AtomicU64,
    timeouts: AtomicU64,
    busy: AtomicU64,
    scripts: AtomicU64,
    others: AtomicU64,
    retries: AtomicU64,
}

impl ServerErrorCounters {
    pub(crate) fn record(&self, error: &ServerError) {
        let count = match error {
            ServerError::NoConnection(..) | ServerError::Lost(_) => &self.connections,
            ServerError::Timeout => &self.timeouts,
            ServerError::Busy(_) | ServerError::Moved(_) | ServerError::Ask(_) => &self.busy,
            ServerError::NoScript => &self.scripts,
            _ => &self.others,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn error_counts(&self) -> ServerErrorCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ServerErrorCounts {
            connections: of(&self.connections),
            timeouts: of(&self.timeouts),
            busy: of(&self.busy),
            scripts: of(&self.scripts),
            others: of(&self.others),
            retries: of(&self.retries),
        }
    }
}
