//! A store that fails on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_core::{Denial, Limits, Status};

use crate::records::{Cursor, Index, Item, ItemKey, Page, Query, Records, RecordsError, Write};
use crate::{
    Activity, Backend, BucketRef, BucketStatus, Clock, OutcomeCallback, QueuePlace, Rank, Reach, Reply,
    Scope, Step, Store, StoreError, Transaction, TxnOutcome, WaitQueues,
};

/// A way in which a call fails.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Fault, FaultStore, Key, Memory, Op, Step, Store, Transaction};
///
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::resource("slots", 3)])?);
/// let costs = limits.costs(&demand! { slots: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// for (fault, available) in [(Fault::LoseCall, 3), (Fault::LoseReply, 2)] {
///     let store = FaultStore::new(Memory::default(), move |_| Some(fault));
///     assert!(store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait().is_err());
///     assert_eq!(store.inner().peek(&place).wait()?[0].available(), available);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call never arrives.
    LoseCall,
    /// The call is applied, and the answer is lost.
    LoseReply,
}

type FaultPlan = dyn Fn(u64) -> Option<Fault> + Send + Sync;

/// Wraps a store and injects faults by a plan: a function from the number of a call to its fault.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Fault, FaultStore, Key, Memory, Op, OpId, Step, Store, Transaction};
///
/// // The reply to the first call is lost.
/// let store = FaultStore::new(Memory::default(), |call| (call == 0).then_some(Fault::LoseReply));
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::resource("slots", 3)])?);
/// let costs = limits.costs(&demand! { slots: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let call = Transaction { id: Some(OpId(7)), steps: &steps, metered: false };
/// assert!(store.apply(&call).wait().is_err());
/// // A retry with the same id takes nothing again.
/// assert!(store.apply(&call).wait().is_ok());
/// assert_eq!((store.peek(&place).wait()?[0].available(), store.calls()), (2, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FaultStore<S> {
    inner: S,
    plan: Arc<FaultPlan>,
    calls: AtomicU64,
}

impl<S> FaultStore<S> {
    /// Returns a store that fails by `plan`. Calls count from 0.
    pub fn new(inner: S, plan: impl Fn(u64) -> Option<Fault> + Send + Sync + 'static) -> FaultStore<S> {
        FaultStore { inner, plan: Arc::new(plan), calls: AtomicU64::new(0) }
    }

    /// Returns the store without the faults.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Returns the number of calls that were made.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

impl<S> FaultStore<S> {
    /// Makes a call with its fault. For a call that only reads both faults are the same.
    fn call<'a, T: Unpin + Send + 'a, E: From<StoreError> + Unpin + Send + 'a>(
        &'a self,
        make: impl FnOnce(&'a S) -> Reply<'a, Result<T, E>>,
    ) -> Reply<'a, Result<T, E>> {
        match self.next_fault() {
            None => make(&self.inner),
            Some(Fault::LoseCall) => Reply::ready(Err(lost("the call was lost").into())),
            Some(Fault::LoseReply) => {
                let reply = make(&self.inner);
                Reply::later(async move { reply.await.and_then(|_| Err(lost("the reply was lost").into())) })
            }
        }
    }

    fn next_fault(&self) -> Option<Fault> {
        (self.plan)(self.calls.fetch_add(1, Ordering::SeqCst))
    }
}

fn lost(what: &str) -> StoreError {
    StoreError::Unavailable(Duration::ZERO, what.into())
}

impl<S: Store> Store for FaultStore<S> {
    fn reach(&self) -> Reach {
        self.inner.reach()
    }

    fn clock(&self) -> &Clock {
        self.inner.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        self.call(|inner| inner.apply(call))
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        self.call(|inner| inner.evaluate(steps))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        self.call(|inner| inner.peek(place))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        if self.next_fault() != Some(Fault::LoseCall) {
            self.inner.apply_detached(call);
        }
    }

    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        if self.next_fault() != Some(Fault::LoseCall) {
            self.inner.apply_detached_with(call, callback);
        }
    }

    fn new_holder_id(&self) -> u128 {
        self.inner.new_holder_id()
    }

    fn new_living_holder(&self) -> u128 {
        self.inner.new_living_holder()
    }
}

impl<S: Records> Records for FaultStore<S> {
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        self.call(|inner| inner.get_many(keys))
    }

    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
        self.call(|inner| inner.write(writes))
    }

    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
        self.call(|inner| inner.query(query))
    }

    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
        self.call(|inner| inner.find(index, query))
    }

    fn unindexed(&self, after: Option<Cursor>) -> Reply<'_, Result<Page<ItemKey>, RecordsError>> {
        self.call(|inner| inner.unindexed(after))
    }

    fn revision(&self) -> Option<u64> {
        self.inner.revision()
    }
}

/// Nothing is [pinned](Backend::pin): what has nothing in between is out of the reach of faults.
impl<S: Backend> Backend for FaultStore<S> {
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>> {
        self.call(|inner| inner.apply_with(call, writes))
    }

    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>> {
        self.call(|inner| inner.buckets(namespace, scope, after, limit))
    }

    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>> {
        self.call(|inner| inner.forget(namespace, scope))
    }

    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>> {
        self.call(|inner| inner.close(namespace))
    }

    fn apply_in_turn<'a>(
        &'a self,
        call: &Transaction<'a>,
        place: QueuePlace,
    ) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        self.call(|inner| inner.apply_in_turn(call, place))
    }

    fn leave_queues(&self, rank: Rank) -> Reply<'_, ()> {
        match self.next_fault() {
            Some(Fault::LoseCall) => Reply::ready(()),
            _ => self.inner.leave_queues(rank),
        }
    }

    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>> {
        self.call(|inner| inner.activity(namespace, scope, after))
    }

    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
        self.call(|inner| inner.usage_at(keys))
    }

    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>> {
        self.call(|inner| inner.write_usage(namespace, scope))
    }

    fn prefetch_bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        self.inner.prefetch_bounds(limits)
    }

    fn wait_queues(&self) -> &WaitQueues {
        self.inner.wait_queues()
    }
}
