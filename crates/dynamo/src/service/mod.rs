//! The service: calls to one table, tried again where that helps.

mod bounded;
mod counts;
mod failure;
mod pause;

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::TransactWriteItem;
use aws_sdk_dynamodb::{Client, Error};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use tollgate_core::Tick;
use tollgate_store::Clock;
use tollgate_store::workers::{Within, Workers};

use crate::ServiceError;

pub(crate) use bounded::Bounded;
use counts::ServiceErrorCounters;
pub use counts::ServiceErrorCounts;
pub(crate) use failure::{Attributes, CallFailure, CancelReason};
pub(crate) use pause::{RetryPolicy, Tried};

/// A table of the service, and all that is needed to call it.
///
/// The retries of the SDK are off: only here it is known which calls may be made twice.
#[derive(Debug)]
pub(crate) struct TableService {
    pub(crate) client: Client,
    /// How to call the stream of the table.
    #[cfg(feature = "aggregate")]
    pub(crate) streams: aws_sdk_dynamodbstreams::Config,
    pub(crate) table: String,
    /// The time of the service.
    pub(crate) clock: Clock,
    /// How long a call may take, with all its tries.
    pub(crate) timeout: Duration,
    pub(crate) patience: RetryPolicy,
    pub(crate) counts: ServiceErrorCounters,
    pub(crate) workers: Workers,
}

impl TableService {
    /// Makes a call once.
    ///
    /// # Cancel safety
    ///
    /// The call may be made or not.
    pub(crate) async fn try_once<T, E>(
        &self,
        send: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, CallFailure>
    where
        E: Into<Error> + ProvideErrorMetadata,
    {
        self.attempt(send, Elapsed::start(), self.timeout).await
    }

    /// Makes a call, again and again while the trouble may pass, until the timeout. Only for what may be applied twice
    /// unharmed: reads, plain puts and deletes, transactions with a token.
    ///
    /// # Cancel safety
    ///
    /// The call may be made or not.
    pub(crate) async fn with_retries<T, E, F>(&self, send: impl Fn() -> F) -> Result<T, CallFailure>
    where
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
        E: Into<Error> + ProvideErrorMetadata,
    {
        let (watch, mut tried) = (Elapsed::start(), Tried::default());
        loop {
            // An answer that is lost must leave time for another try.
            let most = self.timeout.saturating_sub(watch.waited()).min(self.timeout / 2);
            match self.attempt(send(), watch, most).await {
                Err(CallFailure::Trouble(trouble, _)) => self.pause(watch, &mut tried, trouble).await?,
                answer => return answer,
            }
        }
    }

    /// Waits for a moment after a call that failed like this, or says that it is enough. For calls that are made again
    /// by rules of their own.
    pub(crate) async fn pause(
        &self,
        watch: Elapsed,
        tried: &mut Tried,
        trouble: ServiceError,
    ) -> Result<(), CallFailure> {
        let left = self.timeout.saturating_sub(watch.waited());
        let pause = tried.pause(&trouble, self.patience).filter(|pause| *pause < left);
        let Some(pause) = pause else { return Err(CallFailure::Trouble(trouble, watch.waited())) };
        self.counts.retried();
        tokio::time::sleep(pause).await;
        Ok(())
    }

    async fn attempt<T, E>(
        &self,
        send: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
        watch: Elapsed,
        most: Duration,
    ) -> Result<T, CallFailure>
    where
        E: Into<Error> + ProvideErrorMetadata,
    {
        let failure = match tokio::time::timeout(most, send).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => failure::failure(error, &self.table, watch.waited()),
            Err(_) => CallFailure::Trouble(ServiceError::Timeout, watch.waited()),
        };
        if let CallFailure::Trouble(trouble, _) = &failure {
            self.counts.met(trouble);
        }
        Err(failure)
    }

    /// A name for a transaction, by which the service knows it when it is sent again.
    pub(crate) fn token(&self) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let counted = |_| {
            (u128::from(self.clock.now().as_micros()) << 64)
                | u128::from(COUNT.fetch_add(1, Ordering::Relaxed))
        };
        let mut bytes = [0; 16];
        // Without randomness the time and a count tell those of one process apart.
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

/// How long something takes, by the system's clock: how long the network takes has nothing to do with the store's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elapsed(Tick);

impl Elapsed {
    pub(crate) fn start() -> Elapsed {
        Elapsed(Clock::system().now())
    }

    pub(crate) fn waited(self) -> Duration {
        Clock::system().now().since(self.0).to_duration()
    }
}
