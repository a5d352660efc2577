//! Transactions on buckets in shared memory.

use tollgate_core::Tick;
use tollgate_store::records::{Item, ItemKey, Write};
use tollgate_store::txn::{self, BucketTxn, TxnBucket};
use tollgate_store::usage::UsageRetention;
use tollgate_store::{BucketRef, OpId, Step, StepOutcome, Transaction, TxnOutcome};

use crate::error::TxnAbort;
use crate::key::{KeyKind, MapKey};
use crate::layout::REVISION;
use crate::limits::ShmLimitsCache;
use crate::row::{self, RowParts};
use crate::sweep;
use crate::tx::Tx;

/// Applies the call and makes the writes, or neither; once if the call has an id.
#[inline]
pub(crate) fn apply(
    tx: &mut Tx<'_>,
    known: &mut ShmLimitsCache,
    call: &Transaction<'_>,
    writes: &[Write],
    now: Tick,
) -> Result<TxnOutcome, TxnAbort> {
    let parts = if call.metered { RowParts::BucketAndUsage } else { RowParts::Bucket };
    let mut txn = ShmTxn { tx, known, now, parts, buckets_made: 0 };
    let outcome = txn::apply(&mut txn, call, writes)?.outcome;
    let ShmTxn { tx, known, buckets_made, .. } = txn;
    sweep::sweep(tx, known, buckets_made, now)?;
    Ok(outcome)
}

struct ShmTxn<'a, 'm> {
    tx: &'a mut Tx<'m>,
    known: &'a mut ShmLimitsCache,
    now: Tick,
    /// Usage is read and written only if the call is metered.
    parts: RowParts,
    buckets_made: usize,
}

impl BucketTxn for ShmTxn<'_, '_> {
    type Error = TxnAbort;

    /// The entry of the bucket; `None` if it has none yet.
    type Handle = Option<u64>;

    const SEES_PROCESSES: bool = true;

    fn find_outcome(&mut self, id: OpId) -> Result<Option<Vec<StepOutcome>>, TxnAbort> {
        self.tx.find_call(id)
    }

    fn remember_outcome(&mut self, id: OpId, done: &[StepOutcome], now: Tick) -> Result<(), TxnAbort> {
        self.tx.remember_call(id, now, done)
    }

    #[inline]
    fn now(&mut self, _: &[Step<'_>]) -> Result<Tick, TxnAbort> {
        Ok(self.now)
    }

    #[inline]
    fn load(&mut self, place: &BucketRef<'_>) -> Result<Option<TxnBucket<Option<u64>>>, TxnAbort> {
        let Some(entry) = row::find(self.tx, place.namespace, place.key)? else { return Ok(None) };
        let bucket = row::read(self.tx, self.known, entry, Some(place.limits), self.parts)?;
        Ok(Some(TxnBucket::new(bucket, Some(entry))))
    }

    #[inline]
    fn put(
        &mut self,
        place: &BucketRef<'_>,
        bucket: TxnBucket<Option<u64>>,
        _: Tick,
    ) -> Result<(), TxnAbort> {
        let TxnBucket { metered, handle, .. } = bucket;
        match handle {
            Some(entry) => row::write(self.tx, self.known, entry, &metered, self.parts)?,
            None => {
                self.buckets_made += 1;
                row::insert(self.tx, self.known, (place.namespace, place.key), &metered)?;
            }
        }
        self.known.keep(metered);
        Ok(())
    }

    fn is_closed(&mut self, namespace: &str) -> Result<bool, TxnAbort> {
        is_closed(self.tx, namespace)
    }

    fn may_have_dropped(&self, taken: Tick, now: Tick) -> bool {
        sweep::may_have_dropped(taken, now)
    }

    fn record(&mut self, key: &ItemKey, now: Tick) -> Result<Option<Item>, TxnAbort> {
        self.tx.record(key, now)
    }

    #[inline]
    fn write_records(&mut self, writes: &[Write], now: Tick) -> Result<(), TxnAbort> {
        if writes.is_empty() {
            return Ok(());
        }
        // Before anything that others could read, so that a reader that sees the old number sees no new record.
        self.tx.count_up(REVISION)?;
        self.tx.write_records(writes, now)
    }

    #[inline]
    fn write_usage(&mut self, writes: &[Write], now: Tick) -> Result<(), TxnAbort> {
        if writes.is_empty() {
            return Ok(());
        }
        self.tx.write_records(writes, now)
    }

    #[inline]
    fn usage_retention(&self) -> &UsageRetention {
        &self.tx.arena.usage_retention
    }
}

/// Returns whether no bucket is made in a namespace any more.
pub(crate) fn is_closed(tx: &Tx<'_>, namespace: &str) -> Result<bool, TxnAbort> {
    Ok(tx.find(&closed_key(namespace))?.is_some())
}

/// Lets no bucket be made in a namespace any more.
pub(crate) fn close(tx: &mut Tx<'_>, namespace: &str) -> Result<(), TxnAbort> {
    if !is_closed(tx, namespace)? {
        tx.insert(&closed_key(namespace), 0)?;
    }
    Ok(())
}

fn closed_key(namespace: &str) -> MapKey {
    MapKey::new(KeyKind::Closed).raw(namespace.as_bytes())
}
