//! The memory store.

mod apply;
mod dedup;
mod evaluate;
mod metering;
mod namespace;
mod records;
mod scope;
mod store;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tollgate_core::{Costs, Denial, Limits};

use crate::Taken;
use crate::locked::Wakeups;
use crate::sync::Mutex;
use crate::usage::UsageRetention;
use crate::{BucketCell, BucketRef, Clock, Key, PerProcess, Priority, StoreError, WaitQueues, generation};

use dedup::Dedup;
pub use namespace::NamespaceTable;
use records::RecordTable;

/// Buckets in the memory of this process: the default, and the fastest.
///
/// Each namespace has its own table and its own bound on keys, so that one tenant cannot push out another. A bucket
/// that equals a fresh one is redundant, and each new key drops a few of those; any other bucket is never dropped,
/// because that would admit too much.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Memory, Op, Step, Store, Transaction, TxnOutcome};
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::resource("slots", 3)])?);
/// let costs = limits.costs(&demand! { slots: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let outcome = store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait()?;
/// assert!(matches!(outcome, TxnOutcome::Done(_)));
/// assert_eq!(store.peek(&place).wait()?[0].available(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Memory {
    clock: Clock,
    keys_max: usize,
    usage_retention: UsageRetention,
    /// A forked process has its own. A call that its parent remembers is not one of its calls.
    namespaces: PerProcess<Mutex<NamespaceTables>>,
    recent: PerProcess<Dedup>,
    records: Arc<RecordTable>,
    holders: AtomicU64,
    wait_queues: WaitQueues,
}

type NamespaceTables = HashMap<Box<str>, Arc<NamespaceTable>>;

/// The wakeups of each cell, to be done once no lock is held.
type Afters = Vec<(Arc<BucketCell>, Wakeups)>;

/// Settings of a [`Memory`].
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{Memory, Priority, Store, StoreError};
///
/// // A namespace may have one key in use, so a second one is refused.
/// let store = Memory::builder().keys_max(1).build();
/// let (app, limits) = (store.namespace("app"), Limits::new([Limit::per_day("rpd", 100)])?);
/// let costs = limits.costs(&demand! { rpd: 1 })?;
/// let take = |entity| app.try_take(store.clock(), &[entity], &limits, &costs, Priority::Normal);
/// assert!(take("user-1").is_ok());
/// assert!(matches!(take("user-2"), Err(StoreError::NamespaceFull { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct MemoryBuilder {
    clock: Clock,
    keys_max: usize,
    usage_retention: UsageRetention,
}

impl MemoryBuilder {
    /// Sets the clock; the clock of the system by default.
    pub fn clock(self, clock: Clock) -> MemoryBuilder {
        MemoryBuilder { clock, ..self }
    }

    /// Sets how many keys a namespace may have in use; [`NamespaceTable::KEYS_MAX`] by default.
    pub fn keys_max(self, keys_max: usize) -> MemoryBuilder {
        MemoryBuilder { keys_max, ..self }
    }

    /// Sets how long records of usage are kept; [`UsageRetention::default`] by default.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> MemoryBuilder {
        MemoryBuilder { usage_retention, ..self }
    }

    /// Returns the store.
    pub fn build(self) -> Memory {
        let MemoryBuilder { clock, keys_max, usage_retention } = self;
        Memory {
            clock,
            keys_max,
            usage_retention,
            namespaces: PerProcess::new(generation().into()),
            recent: PerProcess::new(generation().into()),
            records: Arc::default(),
            holders: AtomicU64::new(1),
            wait_queues: WaitQueues::default(),
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::builder().build()
    }
}

impl Memory {
    /// Returns settings to start from.
    pub fn builder() -> MemoryBuilder {
        MemoryBuilder {
            clock: Clock::system(),
            keys_max: NamespaceTable::KEYS_MAX,
            usage_retention: UsageRetention::default(),
        }
    }

    /// Returns the namespaces, as this process has them. Those of its parent are copied unless a thread had them
    /// locked.
    fn namespaces(&self) -> &Mutex<NamespaceTables> {
        self.namespaces.get_or(generation().into(), |parent| {
            Mutex::new(parent.try_lock().map(|namespaces| namespaces.clone()).unwrap_or_default())
        })
    }

    fn dedup(&self) -> &Dedup {
        self.recent.get(generation().into())
    }

    /// Returns the buckets of a namespace. A caller that keeps them saves a lookup.
    pub fn namespace(&self, namespace: &str) -> Arc<NamespaceTable> {
        let mut namespaces = self.namespaces().lock();
        if let Some(space) = namespaces.get(namespace) {
            return Arc::clone(space);
        }
        let records = Arc::clone(&self.records);
        let space = Arc::new(NamespaceTable::new(namespace, self.keys_max, records, self.usage_retention));
        namespaces.insert(namespace.into(), Arc::clone(&space));
        space
    }

    /// Returns the cell of a bucket, which stays in place for as long as a caller has it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NamespaceFull`], [`StoreError::NamespaceGone`].
    pub fn cell(&self, place: &BucketRef<'_>) -> Result<Arc<BucketCell>, StoreError> {
        self.namespace(place.namespace).cell(place.key, place.limits, self.clock.now())
    }

    /// Follows up for each cell. The caller holds no lock.
    fn follow_up(&self, afters: Afters) {
        afters.into_iter().for_each(|(cell, after)| cell.follow_up(after, &self.clock));
    }
}

impl NamespaceTable {
    /// Takes `costs` of the bucket at `parts` now, or returns a denial. The fastest take for many keys.
    ///
    /// The limits come with the call. Limits of other names that came with other calls keep what was used of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::NamespaceFull`] for a new key where there is no room, [`StoreError::NamespaceGone`] for one in a
    /// namespace that was closed.
    #[inline]
    pub fn try_take<S: AsRef<str>>(
        &self,
        clock: &Clock,
        parts: &[S],
        limits: &Limits,
        costs: &Costs,
        priority: Priority,
    ) -> Result<Result<Taken, Box<Denial>>, StoreError> {
        let now = clock.now();
        let (taken, after) = Key::with_bytes(parts, |bytes| {
            self.with(bytes, limits, now, |cell| {
                let mut inner = cell.lock();
                if inner.is_under(limits) {
                    return (inner.try_take(now, costs, None, priority), None);
                }
                let costs = inner.join(now, limits, costs);
                // Under other limits waiters may pass, and they come first.
                let after = inner.waiting.is_some().then(|| Box::new((Arc::clone(cell), inner.serve(now))));
                (inner.try_take(now, &costs, None, priority), after)
            })
        })?;
        if let Some(after) = after {
            let (cell, after) = *after;
            cell.follow_up(after, clock);
        }
        Ok(taken)
    }
}
