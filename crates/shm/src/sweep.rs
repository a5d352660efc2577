//! Sweeping: each new bucket drops a few that are idle.

use tollgate_core::{Span, Tick};
use tollgate_store::LivenessCache;

use crate::error::TxnAbort;
use crate::layout::{CHAINS, SWEEP};
use crate::limits::ShmLimitsCache;
use crate::row::{self, RowParts};
use crate::tx::Tx;

/// How many chains are checked for each new bucket. There are as many chains as buckets, so two keep pace with any
/// growth.
const SWEPT_PER_NEW: usize = 2;

/// How many new buckets count for the sweep of one call.
const NEW_MAX: usize = 16;

/// How long a bucket is idle before it is dropped.
const IDLE_FOR: Span = Span::from_secs(3_600);

/// Returns whether a bucket that was taken from at `taken` may have been dropped since because it was idle.
pub(crate) fn may_have_dropped(taken: Tick, now: Tick) -> bool {
    now.since(taken) > IDLE_FOR
}

/// Checks the next chains: drops buckets that are idle, and writes usage of past hours to the records.
pub(crate) fn sweep(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    made: usize,
    now: Tick,
) -> Result<(), TxnAbort> {
    for _ in 0..made.min(NEW_MAX) * SWEPT_PER_NEW {
        let chain = tx.get(SWEEP)?;
        let chain = if chain < tx.get(CHAINS)? { chain } else { 0 };
        tx.set_root(SWEEP, chain + 1)?;
        for entry in tx.entries(chain)? {
            sweep_bucket(tx, known, entry, now)?;
        }
    }
    Ok(())
}

fn sweep_bucket(tx: &mut Tx<'_>, known: &mut ShmLimitsCache, entry: u64, now: Tick) -> Result<(), TxnAbort> {
    // A bucket that cannot be read is skipped: a caller that asks for it gets the error.
    let Ok(mut bucket) = row::read(tx, known, entry, None, RowParts::BucketAndUsage) else { return Ok(()) };
    bucket.stored.keep_living(now, &mut LivenessCache::default());
    let is_idle = bucket.stored.is_idle(IDLE_FOR, now);
    let over = bucket.usage.take_if(|sums| is_idle || !sums.is_of_hour(now));
    if let Some(sums) = &over {
        let (namespace, key) = row::address(tx, entry)?;
        if let Some((entity, resource)) = key.pair() {
            let writes = sums.writes(&namespace, entity, resource, &tx.arena.usage_retention);
            tx.write_records(&writes, now)?;
        }
    }
    if is_idle {
        row::remove(tx, known, entry)?;
    } else if over.is_some() {
        row::write(tx, known, entry, &bucket, RowParts::BucketAndUsage)?;
    }
    Ok(())
}
