//! The trait that a store implements to have transactions applied.

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
    /// The usage that is in no record yet.
    pub usage: Option<Sums>,
}

impl MeteredBucket {
    /// Makes a bucket of which nothing was used.
    pub fn fresh(limits: &Limits) -> MeteredBucket {
        MeteredBucket { stored: StoredBucket::fresh(limits), usage: None }
    }
}

/// The bucket of one step while a transaction works on it.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::txn::{MeteredBucket, TxnBucket};
///
/// // A store that writes a row on condition that it has not changed keeps the revision it has read.
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let bucket = TxnBucket::new(MeteredBucket::fresh(&limits), Some(7_u64));
/// let condition = match bucket.handle {
///     Some(revision) => format!("revision = {revision}"),
///     None => "the row does not exist".into(),
/// };
/// assert_eq!(condition, "revision = 7");
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
#[derive(Debug)]
pub struct TxnBucket<H> {
    /// The bucket.
    pub metered: MeteredBucket,
    /// The data that the store needs to write the bucket back. The default is that of a bucket that does not exist yet.
    pub handle: H,
    /// True if the limits of the step are put in force although the transaction is denied.
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
///
/// # Errors
///
/// Every method returns an error if the store cannot read or write. Then [`apply`](super::apply) returns that error, and the
/// store does not commit.
///
/// # Examples
///
/// ```
/// use std::collections::HashMap;
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::records::{Item, ItemKey, RecordsError, Write};
/// use tollgate_store::txn::{BucketTxn, MeteredBucket, TxnBucket, apply};
/// use tollgate_store::usage::UsageRetention;
/// use tollgate_store::{BucketRef, Key, Op, Step, Transaction, TxnOutcome};
///
/// /// Buckets and records in maps. A store with a lock or a transaction of its own would begin it here.
/// #[derive(Default)]
/// struct MapTxn {
///     buckets: HashMap<(String, Key), MeteredBucket>,
///     records: HashMap<ItemKey, Item>,
///     retention: UsageRetention,
/// }
///
/// impl BucketTxn for MapTxn {
///     type Error = RecordsError;
///     type Handle = ();
///     const SEES_PROCESSES: bool = false;
///
///     fn now(&mut self, _: &[Step<'_>]) -> Result<Tick, RecordsError> {
///         Ok(Tick::from_secs(10))
///     }
///
///     fn load(&mut self, place: &BucketRef<'_>) -> Result<Option<TxnBucket<()>>, RecordsError> {
///         let found = self.buckets.get(&(place.namespace.into(), place.key.clone()));
///         Ok(found.map(|bucket| TxnBucket::new(bucket.clone(), ())))
///     }
///
///     fn put(&mut self, place: &BucketRef<'_>, bucket: TxnBucket<()>, _: Tick) -> Result<(), RecordsError> {
///         self.buckets.insert((place.namespace.into(), place.key.clone()), bucket.metered);
///         Ok(())
///     }
///
///     fn is_closed(&mut self, _: &str) -> Result<bool, RecordsError> {
///         Ok(false)
///     }
///
///     fn record(&mut self, key: &ItemKey, now: Tick) -> Result<Option<Item>, RecordsError> {
///         Ok(self.records.get(key).filter(|item| !item.has_expired(now)).cloned())
///     }
///
///     fn write_records(&mut self, writes: &[Write], _: Tick) -> Result<(), RecordsError> {
///         for write in writes {
///             if let Some(item) = write.applied(self.records.remove(write.key())) {
///                 self.records.insert(write.key().clone(), item);
///             }
///         }
///         Ok(())
///     }
///
///     fn usage_retention(&self) -> &UsageRetention {
///         &self.retention
///     }
/// }
///
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::per_minute("rpm", 1)])?);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let call = Transaction { id: None, steps: &steps, metered: false };
/// let mut txn = MapTxn::default();
/// assert!(matches!(apply(&mut txn, &call, &[])?.outcome, TxnOutcome::Done(_)));
/// assert!(matches!(apply(&mut txn, &call, &[])?.outcome, TxnOutcome::Denied(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait BucketTxn {
    /// The reason that the transaction ends without an outcome.
    type Error: From<StoreError> + From<RecordsError>;

    /// The data that the store needs to write a bucket back.
    type Handle: Default;

    /// True if holders of resources may be processes of this host, which are alive or not whatever the clock shows.
    const SEES_PROCESSES: bool;

    /// Returns the outcome of the transaction with this id, if it was applied before. By default none was.
    fn find_outcome(&mut self, id: OpId) -> Result<Option<Vec<StepOutcome>>, Self::Error> {
        let _ = id;
        Ok(None)
    }

    /// Stores the outcome of a transaction. By default it does nothing.
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

    /// Returns true if a namespace was closed: no bucket is made in it any more.
    fn is_closed(&mut self, namespace: &str) -> Result<bool, Self::Error>;

    /// Returns true if the store may have dropped a bucket since `taken` because it was idle. By default it never does.
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

    /// Returns true if the takes are denied even if they fit, because waiters come first. By default they are not.
    fn is_held_back(&self) -> bool {
        false
    }

    /// Called after limits were put in force in a bucket that usage may be counted of.
    fn limits_changed(&self, place: &BucketRef<'_>, bucket: &mut TxnBucket<Self::Handle>, now: Tick) {
        let _ = (place, bucket, now);
    }

    /// Returns the usage of a step, where it is not that of the step itself.
    fn usage_override(&self, step: usize) -> Option<Used<'_>> {
        let _ = step;
        None
    }

    /// Counts usage in a bucket. Adds to `writes` what has to go to the records first.
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
