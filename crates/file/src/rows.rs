//! Buckets as rows of the file.

use rusqlite::{Connection, OptionalExtension, params};
use tollgate_core::{Bucket, Limits};
use tollgate_store::txn::MeteredBucket;
use tollgate_store::usage::Sums;
use tollgate_store::{Key, StoredBucket};

use crate::codec::{usage_bytes, usage_from, usage_limits};
use crate::error::{Abort, TxnError, unreadable};
use crate::limits::FileLimitsCache;

/// A row before it is decoded.
pub(crate) struct RawRow {
    limits: i64,
    version: u64,
    state: Vec<u8>,
    usage: Option<Vec<u8>>,
}

impl RawRow {
    /// Reads the columns limits, version, state and usage, from the column with this number on.
    pub(crate) fn read(row: &rusqlite::Row<'_>, first: usize) -> Result<RawRow, TxnError> {
        Ok(RawRow {
            limits: row.get(first)?,
            version: row.get::<_, i64>(first + 1)? as u64,
            state: row.get(first + 2)?,
            usage: row.get(first + 3)?,
        })
    }

    /// Decodes the bucket; its limits are probably those `expected`.
    pub(crate) fn decode(
        self,
        connection: &Connection,
        known: &mut FileLimitsCache,
        expected: Option<&Limits>,
    ) -> Result<MeteredBucket, Abort> {
        let limits = known.get(connection, self.limits, expected)?;
        let bucket = Bucket::from_bytes(&limits, &self.state).map_err(|why| unreadable("a bucket", why))?;
        let usage = match &self.usage {
            None => None,
            Some(bytes) => Some(sums(connection, known, bytes)?),
        };
        let stored = StoredBucket { limits, version: self.version, bucket };
        Ok(MeteredBucket { stored, usage })
    }
}

fn sums(connection: &Connection, known: &mut FileLimitsCache, bytes: &[u8]) -> Result<Sums, Abort> {
    let unreadable = || unreadable("usage", "it is cut off or damaged");
    let limits = known.get(connection, usage_limits(bytes).ok_or_else(unreadable)?, None)?;
    usage_from(limits, bytes).ok_or_else(unreadable)
}

pub(crate) fn get(connection: &Connection, namespace: &str, key: &Key) -> Result<Option<RawRow>, TxnError> {
    let mut get = connection.prepare_cached(
        "SELECT limits, version, state, usage FROM bucket WHERE namespace = ?1 AND key = ?2",
    )?;
    get.query_row(params![namespace, key.as_bytes()], |row| RawRow::read(row, 0)).optional()
}

pub(crate) fn put(
    connection: &Connection,
    known: &mut FileLimitsCache,
    (namespace, key): (&str, &Key),
    MeteredBucket { stored, usage }: &MeteredBucket,
) -> Result<(), TxnError> {
    let limits = known.id_of(connection, &stored.limits)?;
    let usage = match usage.as_ref().filter(|sums| !sums.is_empty()) {
        None => None,
        Some(sums) => Some(usage_bytes(known.id_of(connection, sums.limits())?, sums)),
    };
    let resource = key.pair().map(|(_, resource)| resource);
    let mut put = connection.prepare_cached(
        "INSERT INTO bucket (namespace, key, resource, limits, version, state, usage)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (namespace, key) DO UPDATE SET
         limits = excluded.limits, version = excluded.version, state = excluded.state, usage = excluded.usage",
    )?;
    let (version, state) = (stored.version as i64, stored.bucket.to_bytes());
    put.execute(params![namespace, key.as_bytes(), resource, limits, version, state, usage])?;
    Ok(())
}

pub(crate) fn delete(connection: &Connection, namespace: &str, key: &Key) -> Result<(), TxnError> {
    let mut delete = connection.prepare_cached("DELETE FROM bucket WHERE namespace = ?1 AND key = ?2")?;
    delete.execute(params![namespace, key.as_bytes()]).map(drop)
}

pub(crate) fn is_closed(connection: &Connection, namespace: &str) -> Result<bool, TxnError> {
    connection.prepare_cached("SELECT 1 FROM closed WHERE namespace = ?1")?.exists([namespace])
}

pub(crate) fn close(connection: &Connection, namespace: &str) -> Result<(), TxnError> {
    let mut close = connection.prepare_cached("INSERT OR IGNORE INTO closed (namespace) VALUES (?1)")?;
    close.execute([namespace]).map(drop)
}
