//! The schema of the file.

use rusqlite::Connection;

use crate::error::TxnError;

/// The application id of a store: the letters `Toll`.
pub(crate) const APPLICATION: i64 = 0x546F_6C6C;

/// The format of the file. A later version that changes it reads the earlier ones.
pub(crate) const FORMAT: i64 = 1;

/// `bucket.key` holds each part behind its length, so the buckets of an entity are next to each other; `resource` is
/// the second part of a key that has two. `bucket.version` is apart from `limits.text`, so that a new version of the
/// same limits is no new text. `record.expires` is for finding what has expired; the body has it too.
const TABLES: &str = "
CREATE TABLE limits (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE bucket (
    namespace TEXT NOT NULL,
    key BLOB NOT NULL,
    resource TEXT,
    limits INTEGER NOT NULL,
    version INTEGER NOT NULL,
    state BLOB NOT NULL,
    usage BLOB,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX bucket_of_resource ON bucket (namespace, resource) WHERE resource IS NOT NULL;
CREATE TABLE closed (
    namespace TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE applied (
    id BLOB PRIMARY KEY,
    at INTEGER NOT NULL,
    outcome BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE record (
    partition_key TEXT NOT NULL,
    sort_key TEXT NOT NULL,
    body TEXT NOT NULL,
    expires INTEGER,
    PRIMARY KEY (partition_key, sort_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX record_expiry ON record (expires) WHERE expires IS NOT NULL;
CREATE TABLE record_index (
    kind INTEGER NOT NULL,
    place_partition TEXT NOT NULL,
    place_sort TEXT NOT NULL,
    partition_key TEXT NOT NULL,
    sort_key TEXT NOT NULL,
    PRIMARY KEY (kind, place_partition, place_sort, partition_key, sort_key)
) STRICT, WITHOUT ROWID;
";

/// The one row that processes [agree on store time](crate::clock) by. A file of an earlier version gets it with the
/// first write; that version ignores it.
pub(crate) const CLOCK_TABLE: &str = "
CREATE TABLE IF NOT EXISTS clock (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot TEXT NOT NULL,
    offset INTEGER NOT NULL,
    written INTEGER NOT NULL,
    target INTEGER NOT NULL
) STRICT;
";

/// The kind of a file, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatMark {
    pub(crate) application: i64,
    pub(crate) format: i64,
}

pub(crate) fn mark(connection: &Connection) -> Result<FormatMark, TxnError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    Ok(FormatMark { application: number("application_id")?, format: number("user_version")? })
}

/// Creates the tables and the application id in one transaction, unless another process was faster.
pub(crate) fn create(connection: &Connection) -> Result<(), TxnError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = mark(connection).and_then(|mark| {
        if mark.application == APPLICATION {
            return Ok(());
        }
        connection.execute_batch(TABLES)?;
        connection.execute_batch(CLOCK_TABLE)?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", FORMAT)
    });
    match made {
        Ok(()) => connection.execute_batch("COMMIT"),
        Err(fault) => {
            // The fault itself may have ended the transaction, so this may fail, which has no effect.
            let _ = connection.execute_batch("ROLLBACK");
            Err(fault)
        }
    }
}
