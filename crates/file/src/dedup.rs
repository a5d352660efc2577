//! Deduplication: transactions that were applied, so that one that is sent again is not applied again.

use rusqlite::{Connection, OptionalExtension, params};
use tollgate_core::{Span, Tick};
use tollgate_store::{OpId, StepOutcome};

use crate::codec::column;
use crate::error::{Abort, TxnError, unreadable};
use crate::select::Select;
use tollgate_store::{decode_outcome, encode_outcome};

/// How long a call is remembered at least.
const REMEMBERED_FOR: Span = Span::from_secs(86_400);

/// How many remembered calls are checked for each new one. Two keep pace with any growth.
const SWEPT_PER_NEW: usize = 2;

/// Returns the outcome of a call, if it was applied.
pub(crate) fn find(connection: &Connection, id: OpId) -> Result<Option<Vec<StepOutcome>>, Abort> {
    let mut find = connection.prepare_cached("SELECT outcome FROM applied WHERE id = ?1")?;
    let outcome: Option<Vec<u8>> = find.query_row([id.0.to_be_bytes()], |row| row.get(0)).optional()?;
    let decode = |bytes: Vec<u8>| {
        decode_outcome(&bytes).ok_or_else(|| unreadable("what came of a call", "it is cut off or damaged"))
    };
    outcome.map(decode).transpose()
}

pub(crate) fn remember(
    connection: &Connection,
    id: OpId,
    now: Tick,
    done: &[StepOutcome],
) -> Result<(), TxnError> {
    let outcome = encode_outcome(done);
    let mut insert =
        connection.prepare_cached("INSERT INTO applied (id, at, outcome) VALUES (?1, ?2, ?3)")?;
    insert.execute(params![id.0.to_be_bytes(), column(now), outcome]).map(drop)
}

/// Forgets a call.
pub(crate) fn forget(connection: &Connection, id: [u8; 16]) -> Result<(), TxnError> {
    connection.prepare_cached("DELETE FROM applied WHERE id = ?1")?.execute([id]).map(drop)
}

/// Checks the next calls behind `cursor`, forgets the old ones, and returns the next cursor.
pub(crate) fn sweep(
    connection: &Connection,
    cursor: &[u8],
    made: usize,
    now: Tick,
) -> Result<Vec<u8>, Abort> {
    let (steps, old) = (made * SWEPT_PER_NEW, column(now - REMEMBERED_FOR));
    let select =
        Select::new("SELECT id, at FROM applied").and("id > ?", Some(cursor.to_vec())).ending("ORDER BY id");
    let found: Vec<([u8; 16], i64)> =
        select.first(connection, steps, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (id, _) in found.iter().filter(|(_, at)| *at < old) {
        forget(connection, *id)?;
    }
    Ok(found.last().filter(|_| found.len() == steps).map_or_else(Vec::new, |(id, _)| id.to_vec()))
}
