//! Sweeping: each new bucket drops a few that are idle, and remembered calls that are old.

use rusqlite::Connection;
use rusqlite::types::Value;
use tollgate_core::{Span, Tick};
use tollgate_store::usage::UsageRetention;
use tollgate_store::{Key, LivenessCache};

use crate::dedup;
use crate::error::{Abort, TxnError};
use crate::limits::FileLimitsCache;
use crate::records;
use crate::rows::{self, RawRow};
use crate::select::Select;

/// How many buckets are checked for each new one. Two keep pace with any growth.
const SWEPT_PER_NEW: usize = 2;

/// How many new buckets or calls count for the sweep of one transaction.
const NEW_MAX: usize = 50;

/// How long a bucket is idle before it is dropped. Long, because inserting a row costs more than updating one.
const IDLE_FOR: Span = Span::from_secs(86_400);

/// Returns whether a bucket that was taken from at `taken` may have been dropped since because it was idle.
pub(crate) fn may_have_dropped(taken: Tick, now: Tick) -> bool {
    now.since(taken) > IDLE_FOR
}

/// The cursors of the sweep, and how much it has to do.
#[derive(Default)]
pub(crate) struct SweepState {
    /// How many buckets were made since the last sweep.
    pub(crate) buckets_made: usize,
    /// How many calls were remembered since the last sweep.
    pub(crate) calls_made: usize,
    bucket: Option<(String, Key)>,
    call: Vec<u8>,
}

/// A bucket and its key.
type SweptBucket = ((String, Key), RawRow);

impl SweepState {
    /// Checks the next buckets and calls: drops buckets that are idle, writes usage of past hours to the records, and
    /// forgets calls that no caller retries any more.
    pub(crate) fn run(
        &mut self,
        connection: &Connection,
        known: &mut FileLimitsCache,
        usage_retention: &UsageRetention,
        now: Tick,
    ) -> Result<(), Abort> {
        let (buckets, calls) = (self.buckets_made.min(NEW_MAX), self.calls_made.min(NEW_MAX));
        (self.buckets_made, self.calls_made) = (0, 0);
        if calls > 0 {
            self.call = dedup::sweep(connection, &self.call, calls, now)?;
        }
        if buckets > 0 {
            for found in self.next(connection, buckets * SWEPT_PER_NEW)? {
                sweep_bucket(connection, known, found, usage_retention, now)?;
            }
        }
        Ok(())
    }

    fn next(&mut self, connection: &Connection, steps: usize) -> Result<Vec<SweptBucket>, Abort> {
        let behind = self
            .bucket
            .as_ref()
            .map(|(namespace, key)| [Value::Text(namespace.clone()), Value::Blob(key.as_bytes().to_vec())]);
        let select = Select::new("SELECT namespace, key, limits, version, state, usage FROM bucket")
            .and_all("(namespace, key) > (?, ?)", behind)
            .ending("ORDER BY namespace, key");
        let found = select.first(connection, steps, |row| {
            let key = Key::from_bytes(row.get_ref(1)?.as_blob().map_err(TxnError::from)?);
            Ok(((row.get(0)?, key), RawRow::read(row, 2)?))
        })?;
        self.bucket = found.last().filter(|_| found.len() == steps).map(|(place, _)| place.clone());
        Ok(found)
    }
}

fn sweep_bucket(
    connection: &Connection,
    known: &mut FileLimitsCache,
    ((namespace, key), raw): SweptBucket,
    usage_retention: &UsageRetention,
    now: Tick,
) -> Result<(), Abort> {
    // A bucket that cannot be read is skipped: a caller that asks for it gets the error.
    let Ok(mut bucket) = raw.decode(connection, known, None) else { return Ok(()) };
    bucket.stored.keep_living(now, &mut LivenessCache::default());
    let is_idle = bucket.stored.is_idle(IDLE_FOR, now);
    let over = bucket.usage.take_if(|sums| is_idle || !sums.is_of_hour(now));
    if let (Some(sums), Some((entity, resource))) = (&over, key.pair()) {
        let writes = sums.writes(&namespace, entity, resource, usage_retention);
        records::make(connection, &writes, now)?;
    }
    if is_idle {
        rows::delete(connection, &namespace, &key)?;
    } else if over.is_some() {
        rows::put(connection, known, (&namespace, &key), &bucket)?;
    }
    Ok(())
}
