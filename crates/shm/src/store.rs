//! The shared memory store, and `Store` for it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Denial, Status, Tick};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::{
    BucketRef, Clock, LivenessCache, Mutex, OutcomeCallback, OwnedTransaction, PerProcess, Reach, Reply,
    Step, Store, StoreError, StoredBucket, Transaction, TxnOutcome, WaitQueues,
};

use crate::apply;
use crate::arena::Arena;
use crate::builder::ShmStoreBuilder;
use crate::check;
use crate::clock;
use crate::deferred::DeferredCalls;
use crate::error::{ShmOpenError, TxnAbort, without_tests};
use crate::layout::WAITING;
use crate::limits::ShmLimitsCache;
use crate::open;
use crate::row::{self, RowParts};
use crate::tx::Tx;
use crate::wait_queue::{self, ShmWaitQueues};

/// How long a detached call waits for the lock. Only a process that is stopped holds it for longer.
const DETACHED_TIMEOUT: Duration = Duration::from_millis(20);

/// A store in memory that all processes of this host which open it by the same name share.
///
/// Cloning shares the store.
///
/// # Cancel safety
///
/// Every call is applied before it returns: there is nothing to cancel.
///
/// # Examples
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tollgate-shm-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// use tollgate_core::{demand, Limit, Limits};
/// use tollgate_shm::ShmStore;
/// use tollgate_store::{TxnOutcome, Transaction, Key, Op, BucketRef, Step, Store};
///
/// let store = ShmStore::builder("limits").folder(&folder).build()?;
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let (key, costs) = (Key::new(&["user-1"]), limits.costs(&demand! { rpm: 1 })?);
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let applied = store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()?;
/// assert!(matches!(applied, TxnOutcome::Done(_)));
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ShmStore(pub(crate) Arc<ShmShared>);

pub(crate) struct ShmShared {
    pub(crate) arena: Arc<Arena>,
    clock: Clock,
    wait_queues: Arc<WaitQueues>,
    queues: Arc<ShmWaitQueues>,
    /// Only ever locked by a thread that has the lock of the memory. If it is locked then, a thread of the parent had
    /// locked it at the fork, and it stays locked.
    known: Mutex<ShmLimitsCache>,
    /// Calls of this process; a forked child does not apply them again.
    deferred: PerProcess<DeferredCalls>,
}

impl ShmStore {
    /// Opens the store of this name, or creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`ShmOpenError`] with the path and what is wrong with it. A file that is not ours is left as it is.
    pub fn open(name: &str) -> Result<ShmStore, ShmOpenError> {
        ShmStore::builder(name).build()
    }

    /// Returns settings to start from.
    pub fn builder(name: &str) -> ShmStoreBuilder {
        ShmStoreBuilder::new(name)
    }

    /// Returns the path of the file. If it is removed, processes that have it open go on sharing it, and all others
    /// create a new one.
    pub fn path(&self) -> &Path {
        &self.0.arena.path
    }

    /// Checks everything in the memory for damage. Other processes wait meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] with what is damaged, or an error of the store.
    pub fn check(&self) -> Result<(), StoreError> {
        self.work(|tx, known| check::check(tx, known)).map_err(without_tests)
    }

    pub(crate) fn from_settings(settings: &ShmStoreBuilder) -> Result<ShmStore, ShmOpenError> {
        let arena = Arc::new(open::open(settings)?);
        let (queues, wait_queues) = ShmWaitQueues::open(Arc::clone(&arena), None);
        let (clock, known) = (clock::open(settings, &arena), Mutex::default());
        let deferred = PerProcess::new(wait_queue::generation());
        Ok(ShmStore(Arc::new(ShmShared { arena, clock, wait_queues, queues, known, deferred })))
    }

    pub(crate) fn wait_queues(&self) -> &WaitQueues {
        &self.0.wait_queues
    }

    /// Runs `work` in a transaction: all of it is applied, or nothing if it is aborted.
    #[inline]
    pub(crate) fn work<T>(
        &self,
        work: impl FnOnce(&mut Tx<'_>, &mut ShmLimitsCache) -> Result<T, TxnAbort>,
    ) -> Result<T, RecordsError> {
        if self.0.deferred().has_any() {
            self.apply_deferred();
        }
        self.0.work(self.0.arena.timeout, work)
    }

    #[inline]
    pub(crate) fn apply_now(
        &self,
        call: &Transaction<'_>,
        writes: &[Write],
    ) -> Result<TxnOutcome, RecordsError> {
        call.check(writes)?;
        if self.0.deferred().has_any() {
            self.apply_deferred();
        }
        self.0.apply(self.0.arena.timeout, call, writes)
    }

    /// Applies the deferred calls.
    #[cold]
    fn apply_deferred(&self) {
        while let Some(call) = self.0.deferred().take() {
            if is_unavailable(&call.with(|call| self.0.apply(DETACHED_TIMEOUT, call, &[]))) {
                return self.0.deferred().put_back(call);
            }
        }
    }
}

impl ShmShared {
    #[inline]
    fn deferred(&self) -> &DeferredCalls {
        self.deferred.get(wait_queue::generation())
    }

    /// Applies a call, and notifies the waiters for what it frees.
    fn apply(
        &self,
        timeout: Duration,
        call: &Transaction<'_>,
        writes: &[Write],
    ) -> Result<TxnOutcome, RecordsError> {
        // Before the lock: a caller that begins to wait in this process from here on sees what is given back.
        let own = if self.queues.is_empty() { None } else { self.queues.slot() };
        let mut targets = Vec::new();
        let applied = self.work(timeout, |tx, known| {
            let applied = apply::apply(tx, known, call, writes, self.clock.now())?;
            if tx.get(WAITING)? != 0 && matches!(applied, TxnOutcome::Done(_)) {
                targets = self.queues.note(tx, call, own)?;
            }
            Ok(applied)
        })?;
        self.queues.notify_noted(&targets);
        Ok(applied)
    }

    #[inline]
    fn work<T>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&mut Tx<'_>, &mut ShmLimitsCache) -> Result<T, TxnAbort>,
    ) -> Result<T, RecordsError> {
        self.arena
            .begin_within(timeout)
            .and_then(|mut tx| {
                let mut known = self.known.try_lock();
                let mut nothing = None;
                let known = match &mut known {
                    Some(known) => &mut **known,
                    None => nothing.insert(ShmLimitsCache::default()),
                };
                known.refresh(&tx)?;
                let done = work(&mut tx, known)?;
                tx.commit()?;
                known.confirm();
                Ok(done)
            })
            .map_err(|stop| stop.explain(&self.arena.path))
    }
}

/// Applies the deferred calls before the last handle is dropped, if it can.
impl Drop for ShmShared {
    fn drop(&mut self) {
        while let Some(call) = self.deferred().take() {
            if is_unavailable(&call.with(|call| self.apply(self.arena.timeout, call, &[]))) {
                return;
            }
        }
    }
}

fn is_unavailable(made: &Result<TxnOutcome, RecordsError>) -> bool {
    matches!(made, Err(RecordsError::Store(StoreError::Unavailable(..))))
}

impl fmt::Debug for ShmStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ShmStore").field(&self.path()).finish()
    }
}

impl Store for ShmStore {
    fn reach(&self) -> Reach {
        Reach::Host
    }

    fn clock(&self) -> &Clock {
        &self.0.clock
    }

    #[inline]
    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        Reply::ready(self.apply_now(call, &[]).map_err(without_tests))
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        let clock = &self.0.clock;
        let asked = self.work(|tx, known| {
            let mut denials = Vec::new();
            for step in steps {
                let now = clock.now();
                denials.extend(seen_bucket(tx, known, &step.place, now)?.evaluate(step, now));
            }
            Ok(denials)
        });
        Reply::ready(asked.map_err(without_tests))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        let clock = &self.0.clock;
        let peeked = self.work(|tx, known| {
            let now = clock.now();
            Ok(seen_bucket(tx, known, place, now)?.peek(place.limits, now))
        });
        Reply::ready(peeked.map_err(without_tests))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.apply_detached_with(call, Box::new(|_| ()));
    }

    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        if call.check(&[]).is_err() {
            return;
        }
        // Behind the calls that were deferred before it, if there are any.
        if self.0.deferred().has_any() {
            self.0.deferred().put(OwnedTransaction::new(call));
            return self.apply_deferred();
        }
        match self.0.apply(DETACHED_TIMEOUT, call, &[]) {
            Ok(applied) => callback(&applied),
            made if is_unavailable(&made) => self.0.deferred().put(OwnedTransaction::new(call)),
            Err(_) => {}
        }
    }

    fn new_holder_id(&self) -> u128 {
        tollgate_store::new_holder_id()
    }

    fn new_living_holder(&self) -> u128 {
        tollgate_store::new_living_holder()
    }
}

/// Returns the bucket without the holders that a take would find to be dead.
fn seen_bucket(
    tx: &Tx<'_>,
    known: &mut ShmLimitsCache,
    place: &BucketRef<'_>,
    now: Tick,
) -> Result<StoredBucket, TxnAbort> {
    let Some(entry) = row::find(tx, place.namespace, place.key)? else {
        return Ok(StoredBucket::fresh(place.limits));
    };
    let stored = row::read(tx, known, entry, Some(place.limits), RowParts::Bucket)?.stored;
    Ok(stored.as_seen(now, &mut LivenessCache::default()))
}
