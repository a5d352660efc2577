//! A spy: a store that counts its calls, and can fail, be interrupted, or hide its revision.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use tollgate_core::{Denial, Status};
use tollgate_store::records::{Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write};
use tollgate_store::{
    Activity, Backend, BucketRef, BucketStatus, Clock, LocalBucket, Mutex, Reach, Reply, Scope, Step, Store,
    StoreError, Transaction, TxnOutcome, WaitQueues,
};

/// A function that runs once, between the reads and the writes of a caller.
type Intrusion = Box<dyn FnOnce() + Send>;

/// A store that delegates every call to another one.
pub(super) struct Spy {
    inner: Arc<dyn Backend>,
    hides_revision: AtomicBool,
    /// The calls, except for those of the clock and the revision.
    calls: AtomicUsize,
    /// The reads by key, and the records they asked for.
    gets: AtomicUsize,
    got: AtomicUsize,
    /// How many more writes succeed; below zero, all of them.
    writes_left: AtomicI64,
    before_write: Mutex<Option<Intrusion>>,
    during_get: Mutex<Option<Intrusion>>,
    lags: AtomicBool,
    is_stale: AtomicBool,
    loses_answers: AtomicBool,
    refuses_writes: AtomicBool,
}

impl Spy {
    pub(super) fn new(inner: Arc<dyn Backend>) -> Spy {
        Spy {
            inner,
            hides_revision: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            gets: AtomicUsize::new(0),
            got: AtomicUsize::new(0),
            writes_left: AtomicI64::new(-1),
            before_write: Mutex::new(None),
            during_get: Mutex::new(None),
            lags: AtomicBool::new(false),
            is_stale: AtomicBool::new(false),
            loses_answers: AtomicBool::new(false),
            refuses_writes: AtomicBool::new(false),
        }
    }

    /// Returns the store itself, whose calls are not counted.
    pub(super) fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    pub(super) fn hide_revision(&self) {
        self.hides_revision.store(true, Ordering::SeqCst);
    }

    /// Returns the number of calls since this was last called.
    pub(super) fn calls(&self) -> usize {
        self.calls.swap(0, Ordering::SeqCst)
    }

    /// Returns the number of reads by key, and of the records they asked for, since this was last called.
    pub(super) fn gets(&self) -> (usize, usize) {
        (self.gets.swap(0, Ordering::SeqCst), self.got.swap(0, Ordering::SeqCst))
    }

    /// Fails every write after the next `writes`.
    pub(super) fn fail_after(&self, writes: i64) {
        self.writes_left.store(writes, Ordering::SeqCst);
    }

    /// Refuses every write, as if the principal may only read.
    pub(super) fn refuse_writes(&self) {
        self.refuses_writes.store(true, Ordering::SeqCst);
    }

    /// Permits writes again.
    pub(super) fn permit_writes(&self) {
        self.refuses_writes.store(false, Ordering::SeqCst);
    }

    /// Lets all writes succeed again.
    pub(super) fn heal(&self) {
        self.fail_after(-1);
    }

    /// Runs a function before the next write, when its caller has read already.
    pub(super) fn before_write(&self, intrusion: impl FnOnce() + Send + 'static) {
        *self.before_write.lock() = Some(Box::new(intrusion));
    }

    /// Runs a function after the next read by key, before its answer is returned.
    pub(super) fn during_get(&self, intrusion: impl FnOnce() + Send + 'static) {
        *self.during_get.lock() = Some(Box::new(intrusion));
    }

    /// Leaves half of the records out of the next listing of a namespace.
    pub(super) fn lag_once(&self) {
        self.lags.store(true, Ordering::SeqCst);
    }

    /// Answers the next change to a bucket and records with `Stale`.
    pub(super) fn be_stale_once(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// Makes the next write, and never answers.
    pub(super) fn lose_an_answer(&self) {
        self.loses_answers.store(true, Ordering::SeqCst);
    }

    fn called(&self) -> &Arc<dyn Backend> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        &self.inner
    }

    fn writing(&self) -> Result<&Arc<dyn Backend>, StoreError> {
        let intrusion = self.before_write.lock().take();
        intrusion.into_iter().for_each(|intrude| intrude());
        if self.refuses_writes.load(Ordering::SeqCst) {
            return Err(StoreError::Refused("not permitted".into()));
        }
        let take = |left: i64| {
            if left > 0 {
                Some(left - 1)
            } else if left < 0 {
                Some(left)
            } else {
                None
            }
        };
        match self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => Ok(self.called()),
            Err(_) => Err(StoreError::Unavailable(Duration::from_secs(1), "made to fail".into())),
        }
    }
}

impl Store for Spy {
    fn reach(&self) -> Reach {
        self.inner.reach()
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        self.called().apply(call)
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        self.called().evaluate(steps)
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        self.called().peek(place)
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.called().apply_detached(call);
    }

    fn new_holder_id(&self) -> u128 {
        self.inner.new_holder_id()
    }
}

impl Records for Spy {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        self.got.fetch_add(keys.len(), Ordering::SeqCst);
        Reply::later(async move {
            let Some(intrude) = self.during_get.lock().take() else {
                return self.called().get_many(keys).await;
            };
            // The records are of one instant, but the answer may be late.
            let items = self.called().get_many(keys).await?;
            intrude();
            Ok(items)
        })
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        match self.writing() {
            Ok(inner) if self.loses_answers.swap(false, Ordering::SeqCst) => Reply::later(async move {
                drop(inner.write(writes).wait());
                std::future::pending().await
            }),
            Ok(inner) => inner.write(writes),
            Err(error) => Reply::ready(Err(error.into())),
        }
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        self.called().query(query)
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        if index != Index::Namespace || !self.lags.swap(false, Ordering::SeqCst) {
            return self.called().find(index, query);
        }
        Reply::later(async move {
            let mut page = self.called().find(index, query).await?;
            page.items.truncate(page.items.len() / 2);
            Ok(Page { next: None, ..page })
        })
    }

    fn unindexed(&self, after: Option<Cursor>) -> Reply<'_, Result<Page<ItemKey>, RecordsError>> {
        self.called().unindexed(after)
    }

    fn revision(&self) -> Option<u64> {
        self.inner.revision().filter(|_| !self.hides_revision.load(Ordering::SeqCst))
    }
}

impl Backend for Spy {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        if self.is_stale.swap(false, Ordering::SeqCst) {
            return Reply::ready(Ok(TxnOutcome::Stale(0)));
        }
        match self.writing() {
            Ok(inner) => inner.apply_with(call, writes),
            Err(error) => Reply::ready(Err(error.into())),
        }
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        self.called().buckets(namespace, scope, after, limit)
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        self.called().forget(namespace, scope)
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        self.called().close(namespace)
    }

    fn wait_queues(&self) -> &WaitQueues {
        self.inner.wait_queues()
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        self.called().activity(namespace, scope, after)
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        self.called().usage_at(keys)
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        self.called().write_usage(namespace, scope)
    }

    fn pin(&self, place: &BucketRef<'_>) -> Option<LocalBucket> {
        self.inner.pin(place)
    }
}
