//! The server: calls to it, made again where that helps.

mod answer;
mod counts;
mod link;
mod meters;
mod scripts;

use std::future::Future;
use std::time::Duration;

use redis::{Cmd, Value};
use tollgate_core::Tick;
use tollgate_store::workers::{Within, Workers};
use tollgate_store::{Clock, StoreError};

use crate::ServerError;
use crate::layout::Layout;
use crate::time::ServerTime;

pub(crate) use answer::{ScriptAnswer, SeenValues, bulks};
use counts::ServerErrorCounters;
pub use counts::ServerErrorCounts;
pub(crate) use link::RedisConnection;
pub(crate) use meters::ScriptClock;
pub(crate) use scripts::{LoadedScript, Scripts};

/// What the first pause between two tries is at most. The next ones are twice as long each.
const FIRST_PAUSE: Duration = Duration::from_millis(4);

/// What any pause is at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A server and all that is needed to call it.
pub(crate) struct RedisService {
    pub(crate) link: RedisConnection,
    pub(crate) layout: Layout,
    pub(crate) scripts: Scripts,
    pub(crate) time: ServerTime,
    /// How long a call may take, with all its tries.
    pub(crate) timeout: Duration,
    pub(crate) counts: ServerErrorCounters,
    pub(crate) workers: Workers,
}

/// For how long a call is being made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimer(Tick);

/// What went wrong, after so long.
#[derive(Debug)]
pub(crate) struct TimedError {
    pub(crate) trouble: ServerError,
    pub(crate) waited: Duration,
}

impl TimedError {
    pub(crate) fn into_error(self) -> StoreError {
        self.trouble.into_error(self.waited)
    }
}

impl CallTimer {
    pub(crate) fn start() -> CallTimer {
        CallTimer(Clock::system().now())
    }

    pub(crate) fn waited(self) -> Duration {
        Clock::system().now().since(self.0).to_duration()
    }
}

impl RedisService {
    /// Runs a script, again and again while the trouble may pass, until the timeout. A script that changes something
    /// remembers what came of it under an id, so it may be sent twice.
    ///
    /// # Cancel safety
    ///
    /// The script may be run or not.
    pub(crate) async fn run<K: AsRef<[u8]>, A: AsRef<[u8]>>(
        &self,
        watch: CallTimer,
        script: &LoadedScript,
        keys: &[K],
        arguments: &[A],
    ) -> Result<Value, StoreError> {
        self.with_retries(watch, &script.run(keys, arguments), Some(script))
            .await
            .map_err(TimedError::into_error)
    }

    /// As [`run`](Self::run), for a command that may be carried out twice unharmed.
    pub(crate) async fn with_retries(
        &self,
        watch: CallTimer,
        command: &Cmd,
        script: Option<&LoadedScript>,
    ) -> Result<Value, TimedError> {
        let (mut round, mut said) = (0, None);
        loop {
            let trouble = match self.attempt(watch, command).await {
                Ok(value) => return Ok(value),
                // A last try that is cut short must not hide why those before it failed.
                Err(ServerError::Timeout) => said.clone().unwrap_or(ServerError::Timeout),
                Err(trouble) => trouble,
            };
            if trouble.is_telling() {
                said = Some(trouble.clone());
            }
            match (&trouble, script) {
                (ServerError::NoScript, Some(script)) => {
                    // A server that forgot it, or never knew it. Should this fail, the next round says so.
                    let _ = self.attempt(watch, &script.load()).await;
                    round += 1;
                    self.pause(watch, round / 4, trouble).await?;
                }
                (ServerError::Moved(_), _) => {
                    round += 1;
                    self.pause(watch, round / 4, trouble).await?;
                }
                _ => {
                    round += 1;
                    self.pause(watch, round, trouble).await?;
                }
            }
        }
    }

    async fn attempt(&self, watch: CallTimer, command: &Cmd) -> Result<Value, ServerError> {
        // An answer that is lost must leave time for another try.
        let most = self.timeout.saturating_sub(watch.waited()).min(self.timeout / 2);
        let sent = tokio::time::timeout(most, self.link.send(command)).await;
        let trouble = match sent {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(trouble)) => trouble,
            Err(_) => {
                self.link.give_up();
                ServerError::Timeout
            }
        };
        self.counts.met(&trouble);
        Err(trouble)
    }

    /// How long the pause behind this round is; longer with each, and never the same for all.
    pub(crate) fn pause_of(&self, round: u32) -> Duration {
        let most = FIRST_PAUSE.saturating_mul(1 << round.min(12)).min(LONGEST_PAUSE);
        if round == 0 { Duration::ZERO } else { most.mul_f64(fraction()) }
    }

    /// Waits for a moment after a try that failed like this, or says that it is enough.
    pub(crate) async fn pause(
        &self,
        watch: CallTimer,
        round: u32,
        trouble: ServerError,
    ) -> Result<(), TimedError> {
        let pause = self.pause_of(round);
        let left = self.timeout.saturating_sub(watch.waited());
        if !trouble.is_passing() || pause >= left {
            return Err(TimedError { trouble, waited: watch.waited() });
        }
        self.counts.retried();
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// The time as scripts get it: nothing if the server's counts.
    pub(crate) fn now(&self) -> String {
        self.time.given().map_or_else(String::new, |now| now.as_micros().to_string())
    }

    /// Wraps a future that its caller polls, with timers and connections of the runtime.
    pub(crate) fn within<F: Future>(&self, future: F) -> Within<F> {
        Within::new(self.workers.handle().clone(), future)
    }
}

/// Anything from 0 to 1: those who failed together must not come back together.
fn fraction() -> f64 {
    // Without randomness half of the pause will do.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
