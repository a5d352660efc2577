//! What a store implements to have transactions applied.

use tollgate_core::{Limits, Tick};

use crate::records::{Item, ItemKey, RecordsError, Write};
use crate::usage::{Sums, UsageRetention, Used};
use crate::{BucketRef, OpId, Step, StepOutcome, StoreError, StoredBucket};

/// A bucket, and what was used of it in the current hour if it is metered.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick};
/// use tollgate_store::txn::MeteredBucket;
///
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let bucket = MeteredBucket::fresh(&limits);
/// assert_eq!(bucket.stored.peek(&limits, Tick::ZERO)[0].available(), 100);
/// assert!(bucket.usage.is_none());
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeteredBucket {
    /// The bucket under its limits.
    pub stored: StoredBucket,
    /// What was used and is in no record yet.
    pub usage: Option<Sums>,
}

impl MeteredBucket {
    /// Makes a bucket of which nothing was used.
    pub fn fresh(limits: &Limits) -> MeteredBucket {
        MeteredBucket { stored: StoredBucket::fresh(limits), usage: None }
    }
}

/// The bucket of one step while a transaction works on it.
#[derive(Debug)]
pub struct TxnBucket<H> {
    /// The bucket.
    pub metered: MeteredBucket,
    /// What the store needs to write the bucket back. The default is that of a bucket that does not exist yet.
    pub handle: H,
    /// Whether the limits of the step are put in force although the transaction is denied.
    pub(super) keeps_limits: bool,
}

impl<H> TxnBucket<H> {
    /// Makes the bucket of a step from what was loaded.
    #[inline]
    pub fn new(metered: MeteredBucket, handle: H) -> TxnBucket<H> {
        TxnBucket { metered, handle, keeps_limits: false }
    }
}

/// One transaction of a store: what [`apply`](super::apply) reads and writes with. Nothing that it writes is visible to others before the
/// store commits.
pub trait BucketTxn {
    /// Why the transaction ends without an outcome.
    type Error: From<StoreError> + From<RecordsError>;

    /// What the store needs to write a bucket back.
    type Handle: Default;

    /// Whether holders of resources may be processes of this host, which live or not whatever the clock says.
    const SEES_PROCESSES: bool;

    /// Returns what came of the transaction with this id, if it was applied before. By default none was.
    fn find_outcome(&mut self, id: OpId) -> Result<Option<Vec<StepOutcome>>, Self::Error> {
        let _ = id;
        Ok(None)
    }

    /// Remembers what came of a transaction. By default it does nothing.
    fn remember_outcome(&mut self, id: OpId, done: &[StepOutcome], now: Tick) -> Result<(), Self::Error> {
        let _ = (id, done, now);
        Ok(())
    }

    /// Returns the time of a transaction with these steps.
    fn now(&mut self, steps: &[Step<'_>]) -> Result<Tick, Self::Error>;

    /// Returns a bucket, if it exists.
    fn load(&mut self, place: &BucketRef<'_>) -> Result<Option<TxnBucket<Self::Handle>>, Self::Error>;

    /// Writes a bucket.
    fn put(
        &mut self,
        place: &BucketRef<'_>,
        bucket: TxnBucket<Self::Handle>,
        now: Tick,
    ) -> Result<(), Self::Error>;

    /// Returns whether a namespace was closed: no bucket is made in it any more.
    fn is_closed(&mut self, namespace: &str) -> Result<bool, Self::Error>;

    /// Returns whether the store may have dropped a bucket since `taken` because it was idle. By default it never does.
    fn may_have_dropped(&self, taken: Tick, now: Tick) -> bool {
        let _ = (taken, now);
        false
    }

    /// Returns a record, if it exists and has not expired.
    fn record(&mut self, key: &ItemKey, now: Tick) -> Result<Option<Item>, Self::Error>;

    /// Returns the first write whose tests fail.
    fn first_failing(&mut self, writes: &[Write], now: Tick) -> Result<Option<usize>, Self::Error> {
        for (index, write) in writes.iter().enumerate().filter(|(_, write)| !write.tests().is_empty()) {
            if !write.passes(self.record(write.key(), now)?.as_ref()) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Makes the writes of the caller, whose tests have passed.
    fn write_records(&mut self, writes: &[Write], now: Tick) -> Result<(), Self::Error>;

    /// Makes the writes of usage, which have no tests.
    fn write_usage(&mut self, writes: &[Write], now: Tick) -> Result<(), Self::Error> {
        self.write_records(writes, now)
    }

    /// Returns how long records of usage are kept.
    fn usage_retention(&self) -> &UsageRetention;

    /// Returns whether the takes are denied even if they fit, because waiters come first. By default they are not.
    fn is_held_back(&self) -> bool {
        false
    }

    /// Called after limits were put in force in a bucket that usage may be counted of.
    fn limits_changed(&self, place: &BucketRef<'_>, bucket: &mut TxnBucket<Self::Handle>, now: Tick) {
        let _ = (place, bucket, now);
    }

    /// Returns what counts as the usage of a step, where that is not what the step itself says.
    fn usage_override(&self, step: usize) -> Option<Used<'_>> {
        let _ = step;
        None
    }

    /// Counts usage in a bucket. What has to go to the records first is added to `writes`.
    #[inline]
    fn count(
        &self,
        used: &Used<'_>,
        bucket: &mut MeteredBucket,
        place: &BucketRef<'_>,
        at: Tick,
        writes: &mut Vec<Write>,
    ) {
        used.count(&mut bucket.usage, place, at, self.usage_retention(), writes);
    }
}
