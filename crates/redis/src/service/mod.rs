//! Calls to the server, with retries.

mod connection;
mod counts;
mod meters;
mod reply;
mod scripts;

use std::future::Future;
use std::time::Duration;

use redis::{Cmd, Value};
use tollgate_store::StoreError;
use tollgate_store::workers::{CallTimer, RetryPauses, Within, Workers};

use crate::ServerError;
use crate::layout::Layout;
use crate::time::ServerTime;

pub(crate) use connection::RedisConnection;
use counts::ServerErrorCounters;
pub use counts::ServerErrorCounts;
pub(crate) use meters::ScriptClock;
pub(crate) use reply::{ScriptAnswer, SeenValues, bulks};
pub(crate) use scripts::{LoadedScript, Scripts};

/// The pauses between attempts, before jitter.
pub(crate) const PAUSES: RetryPauses = RetryPauses::new(Duration::from_millis(8), Duration::from_millis(250));

/// A server, its connection and its scripts.
pub(crate) struct RedisService {
    pub(crate) link: RedisConnection,
    pub(crate) layout: Layout,
    pub(crate) scripts: Scripts,
    pub(crate) time: ServerTime,
    /// How long a call may take, with all its attempts.
    pub(crate) timeout: Duration,
    pub(crate) counts: ServerErrorCounters,
    pub(crate) workers: Workers,
}

/// Why a call failed, and after how long.
#[derive(Debug)]
pub(crate) struct TimedError {
    pub(crate) error: ServerError,
    pub(crate) waited: Duration,
}

impl TimedError {
    pub(crate) fn into_error(self) -> StoreError {
        self.error.into_error(self.waited)
    }
}

impl RedisService {
    /// Runs a script, and retries it while the error may pass, until the timeout. A script that changes something
    /// remembers its outcome under an id, so it may be sent twice.
    ///
    /// # Cancel safety
    ///
    /// The script may be run or not.
    pub(crate) async fn run<K: AsRef<[u8]>, A: AsRef<[u8]>>(
        &self,
        timer: CallTimer,
        script: &LoadedScript,
        keys: &[K],
        arguments: &[A],
    ) -> Result<Value, StoreError> {
        self.with_retries(timer, &script.run(keys, arguments), Some(script))
            .await
            .map_err(TimedError::into_error)
    }

    /// As [`run`](Self::run), for a command that may be executed twice.
    pub(crate) async fn with_retries(
        &self,
        timer: CallTimer,
        command: &Cmd,
        script: Option<&LoadedScript>,
    ) -> Result<Value, TimedError> {
        let (mut round, mut cause) = (0, None);
        loop {
            let error = match self.attempt(timer, command).await {
                Ok(value) => return Ok(value),
                // A last attempt that is cut short must not hide why those before it failed.
                Err(ServerError::Timeout) => cause.clone().unwrap_or(ServerError::Timeout),
                Err(error) => error,
            };
            if error.names_cause() {
                cause = Some(error.clone());
            }
            match (&error, script) {
                (ServerError::NoScript, Some(script)) => {
                    // The server was restarted, or is another one. If loading fails, the next round reports that.
                    let _ = self.attempt(timer, &script.load()).await;
                    round += 1;
                    self.pause(timer, round / 4, error).await?;
                }
                (ServerError::Moved(_), _) => {
                    round += 1;
                    self.pause(timer, round / 4, error).await?;
                }
                _ => {
                    round += 1;
                    self.pause(timer, round, error).await?;
                }
            }
        }
    }

    async fn attempt(&self, timer: CallTimer, command: &Cmd) -> Result<Value, ServerError> {
        // A reply that is lost must leave time for another attempt.
        let most = self.timeout.saturating_sub(timer.elapsed()).min(self.timeout / 2);
        let sent = tokio::time::timeout(most, self.link.send(command)).await;
        let error = match sent {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(_) => {
                self.link.give_up();
                ServerError::Timeout
            }
        };
        self.counts.record(&error);
        Err(error)
    }

    /// Pauses after an attempt that failed like this, or returns the error if there is no time for another.
    pub(crate) async fn pause(
        &self,
        timer: CallTimer,
        round: u32,
        error: ServerError,
    ) -> Result<(), TimedError> {
        let pause = PAUSES.random_after(round);
        let left = self.timeout.saturating_sub(timer.elapsed());
        if !error.is_passing() || pause >= left {
            return Err(TimedError { error, waited: timer.elapsed() });
        }
        self.counts.retried();
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Returns the time as scripts get it: empty if they take the server's.
    pub(crate) fn now(&self) -> String {
        self.time.given().map_or_else(String::new, |now| now.as_micros().to_string())
    }

    /// Wraps a future that its caller polls, with timers and connections of the runtime.
    pub(crate) fn within<F: Future>(&self, future: F) -> Within<F> {
        Within::new(self.workers.handle().clone(), future)
    }
}
