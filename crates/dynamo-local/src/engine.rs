//! The embedded engine.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use dynoxide::Database;
use tollgate_store::Clock;

use crate::answer::HttpAnswer;
use crate::calls::{CallCounters, Calls, asks_for_units};
use crate::connector::Embedded;
use crate::time::TimeSource;
use crate::{dispatch, operation};

/// DynamoDB in this process: tables, indexes, transactions and streams in SQLite. Clones are cheap,
/// and share the engine.
///
/// It is not a production store: one lock, one host, and tables in memory are lost with it.
///
/// ```
/// use tollgate_dynamo_local::Engine;
///
/// let engine = Engine::in_memory()?;
/// engine.set_time(|| 1_700_000_000_000_000);
/// let client = engine.http_client(); // for `aws_sdk_dynamodb::Config::builder().http_client(..)`
/// assert_eq!(engine.delete_expired()?, 0);
/// # drop(client);
/// # Ok::<(), tollgate_dynamo_local::EngineError>(())
/// ```
#[derive(Clone)]
pub struct Engine(Arc<EngineParts>);

struct EngineParts {
    database: Database,
    time: TimeSource,
    counter: CallCounters,
    counts_units: AtomicBool,
}

/// An engine that could not be opened.
///
/// ```
/// use tollgate_dynamo_local::{Engine, EngineError};
///
/// let error = Engine::open("no/such/folder/tables.db").unwrap_err();
/// assert!(matches!(error, EngineError::File(..)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file does not belong to an engine, or cannot be opened.
    #[error("{0} cannot be opened as tables: {1}; name another file, or create its folder")]
    File(String, String),
    /// SQLite cannot be started, or its tables cannot be read.
    #[error("the engine cannot be started: {0}")]
    Memory(String),
}

impl Engine {
    /// Creates an engine whose tables are dropped with its last clone.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Memory`] if SQLite cannot be started.
    pub fn in_memory() -> Result<Engine, EngineError> {
        let time = TimeSource::system();
        // Streams and expiry use the same time as the dates of answers.
        let database = Database::memory_with_clock(Arc::new(time.clone()));
        let database = database.map_err(|error| EngineError::Memory(error.to_string()))?;
        Ok(Engine::of(database, time))
    }

    /// Opens an engine whose tables are in a file, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::File`] with the reason.
    pub fn open(path: impl AsRef<Path>) -> Result<Engine, EngineError> {
        let shown = path.as_ref().display().to_string();
        let Some(text) = path.as_ref().to_str() else {
            return Err(EngineError::File(shown, "its name is not UTF-8".into()));
        };
        create_private(path.as_ref()).map_err(|error| EngineError::File(shown.clone(), error.to_string()))?;
        let database = Database::new(text).map_err(|error| EngineError::File(shown, error.to_string()))?;
        Ok(Engine::of(database, TimeSource::system()))
    }

    fn of(database: Database, time: TimeSource) -> Engine {
        Engine(Arc::new(EngineParts {
            database,
            time,
            counter: CallCounters::default(),
            counts_units: AtomicBool::new(false),
        }))
    }

    /// Returns an HTTP client for the SDK that answers requests in this process, without a socket.
    pub fn http_client(&self) -> SharedHttpClient {
        SharedHttpClient::new(Embedded(self.clone()))
    }

    /// Sets the source of time, in microseconds since 1970: for tests with a manual clock, or with
    /// a wrong one.
    pub fn set_time(&self, time: impl Fn() -> u64 + Send + Sync + 'static) {
        self.0.time.set(time);
    }

    /// Sets a clock as the source of time; see [`Engine::set_time`].
    pub fn set_clock(&self, clock: Clock) {
        self.set_time(move || clock.now().as_micros());
    }

    /// Returns the counts of the calls so far.
    pub fn calls(&self) -> Calls {
        self.0.counter.calls()
    }

    /// Sets whether the units of all calls are counted, also of those that do not ask for them.
    pub fn count_units(&self, counts: bool) {
        self.0.counts_units.store(counts, Ordering::Relaxed);
    }

    /// Deletes expired items, as the service does within a few days, and returns how many.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Memory`] if the tables cannot be read.
    pub fn delete_expired(&self) -> Result<usize, EngineError> {
        self.0.database.sweep_ttl().map_err(|error| EngineError::Memory(error.to_string()))
    }

    /// Answers a request with this `X-Amz-Target` and body.
    pub(crate) fn answer(&self, target: &str, body: &[u8]) -> HttpAnswer {
        let Some(operation) = operation::of_target(target) else { return HttpAnswer::unknown_operation() };
        let with_units = self.0.counts_units.load(Ordering::Relaxed).then(|| ask_for_units(body)).flatten();
        let body = with_units.as_deref().unwrap_or(body);
        let answer = dispatch::dispatch(&self.0.database, operation, body);
        self.0.counter.count(operation, body, &answer);
        answer
    }

    /// Returns the time of answers in the format of the `Date` header.
    pub(crate) fn date(&self) -> String {
        let secs = i64::try_from(self.0.time.micros() / 1_000_000).unwrap_or(i64::MAX);
        // A time without a date is of no use to a client, and an answer without a date is valid.
        DateTime::from_secs(secs).fmt(Format::HttpDate).unwrap_or_default()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("calls", &self.calls()).finish_non_exhaustive()
    }
}

/// Returns the request with a field that asks for its units; `None` if it has that field, or no
/// fields at all.
fn ask_for_units(body: &[u8]) -> Option<Vec<u8>> {
    let fields =
        body.strip_prefix(b"{").filter(|fields| !fields.starts_with(b"}") && !asks_for_units(body))?;
    Some([b"{\"ReturnConsumedCapacity\":\"INDEXES\",", fields].concat())
}

/// Creates a file that only its owner can read, unless it exists. SQLite gives its journals the
/// same mode.
fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.write(true).create_new(true).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn send(engine: &Engine, target: &str, request: Value) -> Value {
        let answer = engine.answer(target, request.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    fn table(engine: &Engine) -> Value {
        let request = json!({
            "TableName": "table",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "k", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "k", "KeyType": "HASH" }],
            "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
        });
        send(engine, "DynamoDB_20120810.CreateTable", request)
    }

    #[test]
    fn a_written_item_is_in_the_stream() {
        let engine = Engine::in_memory().unwrap();
        table(&engine);
        let item = json!({ "k": { "S": "1" }, "n": { "N": "5" } });
        send(&engine, "DynamoDB_20120810.PutItem", json!({ "TableName": "table", "Item": item }));
        let streams = |name: &str| format!("DynamoDBStreams_20120810.{name}");
        let listed = send(&engine, &streams("ListStreams"), json!({ "TableName": "table" }));
        let stream = listed["Streams"][0]["StreamArn"].clone();
        let described = send(&engine, &streams("DescribeStream"), json!({ "StreamArn": stream }));
        let shard = described["StreamDescription"]["Shards"][0]["ShardId"].clone();
        assert!(shard.as_str().is_some_and(|shard| shard.len() >= 28), "clients refuse shorter ids: {shard}");
        let from = json!({ "StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
        let iterator = send(&engine, &streams("GetShardIterator"), from)["ShardIterator"].clone();
        let records = send(&engine, &streams("GetRecords"), json!({ "ShardIterator": iterator }));
        assert_eq!(records["Records"][0]["dynamodb"]["NewImage"], item);
        assert_eq!(records["Records"][0]["eventName"], "INSERT");
    }

    #[test]
    fn calls_are_counted_by_operation_with_their_units() {
        let engine = Engine::in_memory().unwrap();
        table(&engine);
        let before = engine.calls();
        let put = |units: &str| json!({ "TableName": "table", "Item": { "k": { "S": "1" } }, "ReturnConsumedCapacity": units });
        send(&engine, "DynamoDB_20120810.PutItem", put("TOTAL"));
        send(&engine, "DynamoDB_20120810.PutItem", put("NONE"));
        let transaction = json!({
            "TransactItems": [{ "Put": { "TableName": "table", "Item": { "k": { "S": "2" } } } }],
            "ReturnConsumedCapacity": "TOTAL",
        });
        send(&engine, "DynamoDB_20120810.TransactWriteItems", transaction);
        let get = json!({ "TableName": "table", "Key": { "k": { "S": "1" } } });
        send(&engine, "DynamoDB_20120810.GetItem", get);
        let since = engine.calls() - before;
        assert_eq!((since.of("PutItem"), since.of("CreateTable")), (2, 0));
        assert_eq!((since.reads(), since.writes(), since.all()), (1, 3, 4));
        assert_eq!((since.read_units, since.write_units), (0.0, 3.0));
    }

    #[test]
    fn expired_items_are_deleted_by_the_time_that_was_set() {
        let engine = Engine::in_memory().unwrap();
        engine.set_time(|| 1_000_000_000_000);
        table(&engine);
        let ttl = json!({ "TableName": "table", "TimeToLiveSpecification": { "AttributeName": "ttl", "Enabled": true } });
        send(&engine, "DynamoDB_20120810.UpdateTimeToLive", ttl);
        for (key, ttl) in [("1", "999999"), ("2", "1000001")] {
            let item = json!({ "k": { "S": key }, "ttl": { "N": ttl } });
            send(&engine, "DynamoDB_20120810.PutItem", json!({ "TableName": "table", "Item": item }));
        }
        assert_eq!(engine.delete_expired(), Ok(1));
    }

    #[test]
    fn the_date_is_that_of_the_time_that_was_set() {
        let engine = Engine::in_memory().unwrap();
        engine.set_time(|| 1_700_000_000_999_999);
        assert_eq!(engine.date(), "Tue, 14 Nov 2023 22:13:20 GMT");
    }

    #[test]
    fn tables_in_a_file_persist() {
        let folder = std::env::temp_dir().join(format!("tollgate-engine-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tables.db");
        table(&Engine::open(&path).unwrap());
        let described = send(
            &Engine::open(&path).unwrap(),
            "DynamoDB_20120810.DescribeTable",
            json!({ "TableName": "table" }),
        );
        assert_eq!(described["Table"]["TableStatus"], "ACTIVE");
        assert!(matches!(Engine::open(folder.join("none/x.db")), Err(EngineError::File(..))));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_unsupported_operation_is_refused() {
        let engine = Engine::in_memory().unwrap();
        for target in ["", "PutItem", "DynamoDB_20120810.UpdateContinuousBackups"] {
            let answer = engine.answer(target, b"{}");
            assert_eq!((answer.status, answer.error.as_deref()), (400, Some("UnknownOperationException")));
        }
    }
}
