//! Transactions on buckets in a file.

use tollgate_core::Tick;
use tollgate_store::records::{Item, ItemKey, Write};
use tollgate_store::txn::{self, Applied, BucketTxn, TxnBucket};
use tollgate_store::usage::UsageRetention;
use tollgate_store::{BucketRef, Freed, OpId, Step, StepOutcome, Transaction, TxnOutcome};

use crate::dedup;
use crate::error::Abort;
use crate::records;
use crate::rows;
use crate::sweep;
use crate::txn::WriteTxn;

impl WriteTxn<'_> {
    /// Applies the call and makes the writes, or neither; once if the call has an id.
    pub(crate) fn apply(&mut self, call: &Transaction<'_>, writes: &[Write]) -> Result<Applied, Abort> {
        call.check(writes)?;
        let applied = txn::apply(self, call, writes)?;
        if let Applied { outcome: TxnOutcome::Done(_), is_repeat: false } = applied {
            self.freed.extend(call.steps.iter().filter_map(Freed::by));
        }
        Ok(applied)
    }
}

impl BucketTxn for WriteTxn<'_> {
    type Error = Abort;
    type Handle = ();

    const SEES_PROCESSES: bool = true;

    fn find_outcome(&mut self, id: OpId) -> Result<Option<Vec<StepOutcome>>, Abort> {
        dedup::find(self.connection, id)
    }

    fn remember_outcome(&mut self, id: OpId, done: &[StepOutcome], now: Tick) -> Result<(), Abort> {
        self.sweep.calls_made += 1;
        Ok(dedup::remember(self.connection, id, now, done)?)
    }

    /// Returns the time, by a clock that has caught up with the stamps of all buckets.
    fn now(&mut self, steps: &[Step<'_>]) -> Result<Tick, Abort> {
        let mut now = self.clock.now();
        for step in steps {
            if let Some(bucket) = self.row(&step.place)? {
                let stamp = bucket.stored.bucket.stamp();
                now = self.clock.now_for(self.connection, stamp, now)?;
            }
        }
        Ok(now)
    }

    fn load(&mut self, place: &BucketRef<'_>) -> Result<Option<TxnBucket<()>>, Abort> {
        Ok(self.row(place)?.map(|bucket| TxnBucket::new(bucket.clone(), ())))
    }

    fn put(&mut self, place: &BucketRef<'_>, bucket: TxnBucket<()>, _: Tick) -> Result<(), Abort> {
        self.put_row((place.namespace.into(), place.key.clone()), bucket.metered);
        Ok(())
    }

    fn is_closed(&mut self, namespace: &str) -> Result<bool, Abort> {
        Ok(rows::is_closed(self.connection, namespace)?)
    }

    fn may_have_dropped(&self, taken: Tick, now: Tick) -> bool {
        sweep::may_have_dropped(taken, now)
    }

    fn record(&mut self, key: &ItemKey, now: Tick) -> Result<Option<Item>, Abort> {
        records::get(self.connection, key, now)
    }

    fn write_records(&mut self, writes: &[Write], now: Tick) -> Result<(), Abort> {
        records::make(self.connection, writes, now)
    }

    fn usage_retention(&self) -> &UsageRetention {
        self.usage_retention
    }
}
