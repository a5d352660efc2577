//! Background work of a store across a network: calls and jobs that no caller waits for.

use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::{CallTimer, PendingCalls, RetryPauses};
use crate::StoreError;

/// The pauses after attempts that the store did not answer.
const PAUSES: RetryPauses = RetryPauses::new(Duration::from_millis(50), Duration::from_secs(5));

/// Runs background work in the runtime of a store. `K` names a bucket.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::StoreError;
/// use tollgate_store::workers::{Background, Workers};
///
/// # fn start() -> std::io::Result<()> {
/// let workers = Workers::start("example")?;
/// let background = Background::new(workers.handle().clone(), Duration::from_secs(600));
/// background.retry(vec!["bucket"], || async { Ok::<(), StoreError>(()) });
/// # Ok(())
/// # }
/// # start().unwrap();
/// ```
pub struct Background<K> {
    runtime: Handle,
    retried_for: Duration,
    pending: Arc<PendingCalls<K>>,
}

impl<K: Clone + Eq + Hash + Send + 'static> Background<K> {
    /// Returns background work in `runtime`, where a call is retried for `retried_for` at most.
    pub fn new(runtime: Handle, retried_for: Duration) -> Background<K> {
        Background { runtime, retried_for, pending: Arc::default() }
    }

    /// Returns the detached calls that have not been attempted yet.
    pub fn pending(&self) -> &Arc<PendingCalls<K>> {
        &self.pending
    }

    /// Runs a job once, whatever comes of it.
    pub fn spawn<T>(&self, job: impl Future<Output = T> + Send + 'static) -> JoinHandle<()>
    where
        T: Send + 'static,
    {
        self.runtime.spawn(async move { drop(job.await) })
    }

    /// Runs a call until the store answers or refuses it. Callers that ask for the buckets of `keys` wait for the first
    /// attempt.
    pub fn retry<T, F>(&self, keys: Vec<K>, mut attempt: impl FnMut() -> F + Send + 'static)
    where
        F: Future<Output = Result<T, StoreError>> + Send,
        T: Send,
    {
        let mut pending = Some(self.pending.add(keys));
        let attempt = move || {
            let (pending, attempt) = (pending.take(), attempt());
            async move {
                let result = attempt.await;
                drop(pending);
                result
            }
        };
        let retried_for = self.retried_for;
        self.runtime.spawn(async move {
            // What the store refuses for good cannot be helped; what was held expires.
            drop(retry_while_unavailable(retried_for, attempt).await);
        });
    }

    /// Runs a call until the store answers or refuses it, and returns the result of the last attempt.
    ///
    /// # Errors
    ///
    /// The store's, [`StoreError::Unavailable`] if it did not answer in all that time.
    ///
    /// # Cancel safety
    ///
    /// As of the attempts: the one that is in progress is dropped, and no other follows.
    pub async fn until_answered<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        retry_while_unavailable(self.retried_for, attempt).await
    }
}

async fn retry_while_unavailable<T, F>(
    retried_for: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let timer = CallTimer::start();
    let mut failures = 0;
    loop {
        let result = attempt().await;
        if !matches!(result, Err(StoreError::Unavailable(..))) || timer.elapsed() >= retried_for {
            return result;
        }
        failures += 1;
        tokio::time::sleep(PAUSES.after(failures)).await;
    }
}
