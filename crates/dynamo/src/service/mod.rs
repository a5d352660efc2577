//! Calls to one table of the service, with retries.

mod attempts;
mod bounded;
mod counts;
mod failure;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::TransactWriteItem;
use aws_sdk_dynamodb::{Client, Error};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use tollgate_store::workers::{CallTimer, Within, Workers};
use tollgate_store::{Clock, StoreError};

use crate::ServiceError;

use attempts::MISSES_MAX;
pub(crate) use attempts::{Attempts, RetryPolicy};
pub(crate) use bounded::Bounded;
use counts::ServiceErrorCounters;
pub use counts::ServiceErrorCounts;
pub(crate) use failure::{Attributes, CallFailure, CancelReason};

/// A table of the service, and the client to call it.
///
/// The retries of the SDK are off: it does not know which calls may be made twice.
#[derive(Debug)]
pub(crate) struct TableService {
    pub(crate) client: Client,
    /// The configuration of calls to the stream of the table.
    #[cfg(feature = "aggregate")]
    pub(crate) streams: aws_sdk_dynamodbstreams::Config,
    pub(crate) table: String,
    /// The time of the service.
    pub(crate) clock: Clock,
    /// How long a call may take, with all its attempts.
    pub(crate) timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) counts: ServiceErrorCounters,
    pub(crate) workers: Workers,
}

/// A call of the SDK. Boxed, so that the futures of callers do not contain the deep types of the SDK, beyond the depth that
/// the compiler allows.
type SdkCall<'s, T, E> = Pin<Box<dyn Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send + 's>>;

impl TableService {
    /// Makes a call once.
    ///
    /// # Cancel safety
    ///
    /// The call may be made or not.
    pub(crate) fn try_once<'s, T, E>(
        &'s self,
        send: impl Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send + 's,
    ) -> impl Future<Output = Result<T, CallFailure>> + Send + 's
    where
        T: 's,
        E: Into<Error> + ProvideErrorMetadata + Send + 's,
    {
        self.attempt(Box::pin(send), CallTimer::start(), self.timeout)
    }

    /// Makes a call, and retries it while the error may pass, until the timeout. Only for calls that may be applied twice:
    /// reads, plain puts and deletes, transactions with a token.
    ///
    /// # Cancel safety
    ///
    /// The call may be made or not.
    pub(crate) async fn with_retries<T, E, F>(&self, send: impl Fn() -> F) -> Result<T, CallFailure>
    where
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
        E: Into<Error> + ProvideErrorMetadata,
    {
        let mut attempts = Attempts::start();
        loop {
            // An answer that is lost must leave time for another attempt.
            let most = self.timeout.saturating_sub(attempts.timer.elapsed()).min(self.timeout / 2);
            match self.attempt(Box::pin(send()), attempts.timer, most).await {
                Err(CallFailure::Service(error, _)) => self.pause(&mut attempts, error).await?,
                answer => return answer,
            }
        }
    }

    /// Pauses after an attempt that failed like this, or returns the failure if it was the last. For calls that are
    /// retried by rules of their own.
    pub(crate) async fn pause(
        &self,
        attempts: &mut Attempts,
        error: ServiceError,
    ) -> Result<(), CallFailure> {
        let elapsed = attempts.timer.elapsed();
        let left = self.timeout.saturating_sub(elapsed);
        let pause = attempts.pause(&error, self.retry).filter(|pause| *pause < left);
        let Some(pause) = pause else { return Err(CallFailure::Service(error, elapsed)) };
        self.counts.retried();
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Lets the other writers of an item go first after a write that missed. Returns whether time has passed: then the
    /// item must be read again, because the others have written meanwhile, and the next write would miss as well.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if it missed too often or for too long.
    pub(crate) async fn pause_after_miss(&self, attempts: &mut Attempts) -> Result<bool, StoreError> {
        let (pause, elapsed) = (attempts.miss(), attempts.timer.elapsed());
        if attempts.misses >= MISSES_MAX || elapsed > self.timeout {
            let why =
                format!("others wrote to the same bucket {} times in a row; try again", attempts.misses);
            return Err(StoreError::Unavailable(elapsed, why));
        }
        if !attempts.has_missed_often() {
            return Ok(false);
        }
        tokio::time::sleep(pause).await;
        Ok(true)
    }

    async fn attempt<T, E>(
        &self,
        send: SdkCall<'_, T, E>,
        timer: CallTimer,
        most: Duration,
    ) -> Result<T, CallFailure>
    where
        E: Into<Error> + ProvideErrorMetadata,
    {
        let failure = match tokio::time::timeout(most, send).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => failure::failure(error, &self.table, timer.elapsed()),
            Err(_) => CallFailure::Service(ServiceError::Timeout, timer.elapsed()),
        };
        if let CallFailure::Service(error, _) = &failure {
            self.counts.record(error);
        }
        Err(failure)
    }

    /// Returns a token for a transaction, by which the service recognises it when it is sent again.
    pub(crate) fn token(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let counted = |_| {
            (u128::from(self.clock.now().as_micros()) << 64)
                | u128::from(COUNT.fetch_add(1, Ordering::Relaxed))
        };
        let mut bytes = [0; 16];
        // Without randomness, the time and a counter distinguish the tokens of one process.
        let token = getrandom::fill(&mut bytes).map(|()| u128::from_le_bytes(bytes)).unwrap_or_else(counted);
        format!("{token:032x}")
    }

    /// Makes a transaction, which may be sent again.
    ///
    /// # Cancel safety
    ///
    /// The call may be made or not.
    pub(crate) async fn transact(&self, items: Vec<TransactWriteItem>) -> Result<(), CallFailure> {
        let token = self.token();
        let write = || {
            let write = self.client.transact_write_items().client_request_token(&token);
            write.set_transact_items(Some(items.clone())).send()
        };
        self.with_retries(write).await.map(drop)
    }

    /// Runs a future on the task that awaits it, in any executor or thread.
    ///
    /// # Cancel safety
    ///
    /// As that of the future itself: it ends where it is.
    pub(crate) fn within<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Within::new(self.workers.handle().clone(), future)
    }
}
