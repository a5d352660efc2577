//! The embedded engine.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use dynoxide::Database;
use tollgate_store::Clock;

use crate::answer::Answer;
use crate::calls::{Calls, Counter};
use crate::connector::Embedded;
use crate::time::TimeSource;
use crate::{dispatch, operation};

/// DynamoDB in this process: tables, indexes, transactions and streams in SQLite. Cloning is cheap, and clones are one
/// engine.
///
/// It is no production store: one lock, one host, and what is in memory is gone with it.
#[derive(Clone)]
pub struct Engine(Arc<Parts>);

struct Parts {
    database: Database,
    time: TimeSource,
    counter: Counter,
}

/// Why an engine could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file is none of an engine, or cannot be opened.
    #[error("{0} cannot be opened as tables: {1}; name another file, or make its folder")]
    File(String, String),
    /// There is no memory for it.
    #[error("the engine cannot be started: {0}")]
    Memory(String),
}

impl Engine {
    /// An engine whose tables are gone when its last clone is dropped.
    ///
    /// # Errors
    ///
    /// [`EngineError::Memory`] if SQLite cannot be started.
    pub fn in_memory() -> Result<Engine, EngineError> {
        let time = TimeSource::system();
        // Streams and expiry go by the same time as the dates of answers.
        let database = Database::memory_with_clock(Arc::new(time.clone()));
        let database = database.map_err(|error| EngineError::Memory(error.to_string()))?;
        Ok(Engine::of(database, time))
    }

    /// An engine whose tables are in a file, which is made if there is none.
    ///
    /// # Errors
    ///
    /// [`EngineError::File`] with what is wrong with it.
    pub fn open(path: impl AsRef<Path>) -> Result<Engine, EngineError> {
        let shown = path.as_ref().display().to_string();
        let Some(text) = path.as_ref().to_str() else {
            return Err(EngineError::File(shown, "its name is no text".into()));
        };
        let database = Database::new(text).map_err(|error| EngineError::File(shown, error.to_string()))?;
        Ok(Engine::of(database, TimeSource::system()))
    }

    fn of(database: Database, time: TimeSource) -> Engine {
        Engine(Arc::new(Parts { database, time, counter: Counter::default() }))
    }

    /// A client for the SDK that answers its requests here, with no socket in between.
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(Embedded(self.clone()))
    }

    /// Takes the time from somewhere else, in microseconds since 1970: for tests whose clock is turned by hand, or off.
    pub fn set_time(&self, time: impl Fn() -> u64 + Send + Sync + 'static) {
        self.0.time.set(time);
    }

    /// As [`Engine::set_time`], from a clock.
    pub fn set_clock(&self, clock: Clock) {
        self.set_time(move || clock.now().as_micros());
    }

    /// How many calls were answered so far, and what they cost.
    pub fn calls(&self) -> Calls {
        self.0.counter.calls()
    }

    /// Deletes what has expired, as the service does within a few days, and says how many items that were.
    ///
    /// # Errors
    ///
    /// [`EngineError::Memory`] if the tables cannot be read.
    pub fn delete_expired(&self) -> Result<usize, EngineError> {
        self.0.database.sweep_ttl().map_err(|error| EngineError::Memory(error.to_string()))
    }

    /// Answers a request: what `X-Amz-Target` says, and the body.
    pub(crate) fn answer(&self, target: &str, body: &[u8]) -> Answer {
        let Some(operation) = operation::of_target(target) else { return Answer::unknown_operation() };
        let answer = dispatch::dispatch(&self.0.database, operation, body);
        self.0.counter.count(operation, body, &answer);
        answer
    }

    /// The time of answers, as their `Date` says it.
    pub(crate) fn date(&self) -> String {
        let secs = i64::try_from(self.0.time.micros() / 1_000_000).unwrap_or(i64::MAX);
        // A time that has no date is no help to anybody, and an answer without one is allowed.
        DateTime::from_secs(secs).fmt(Format::HttpDate).unwrap_or_default()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("calls", &self.calls()).finish_non_exhaustive()
    }
}
