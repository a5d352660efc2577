//! What a limiter needs of a store: buckets and records together.

use tollgate_core::{Limits, Status};

use crate::records::{Cursor, Item, ItemKey, Page, Records, RecordsError, Write};
use crate::{
    Activity, BucketRef, LocalBucket, QueuePlace, Rank, Reply, Store, StoreError, Transaction, TxnOutcome,
    WaitQueues,
};

/// The most buckets that [`Backend::forget`] forgets at once.
pub const FORGET_MAX: usize = 1_000;

/// Buckets and records in one store, so that both can change together.
///
/// The key of a bucket has two parts here: the entity and the resource.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::records::{Item, ItemKey, Records, Write};
/// use tollgate_store::{Backend, BucketRef, Key, Memory, Op, Step, Transaction, TxnOutcome};
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::per_minute("rpm", 1)])?);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let call = Transaction { id: None, steps: &steps, metered: false };
///
/// // The record is written only if the request is admitted.
/// let keys = ["first", "second"].map(|name| ItemKey::new("app/CALLS", name));
/// let [first, second] = keys.clone().map(|key| [Write::Put(Item::new(key), Vec::new())]);
/// assert!(matches!(store.apply_with(&call, &first).wait()?, TxnOutcome::Done(_)));
/// assert!(matches!(store.apply_with(&call, &second).wait()?, TxnOutcome::Denied(_)));
/// let found = store.get_many(&keys).wait()?;
/// assert!(found[0].is_some() && found[1].is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Backend: Store + Records {
    /// Applies the call and makes the writes, or does neither. The writes of a call that is denied are not made.
    ///
    /// # Cancel safety
    ///
    /// As of [`apply`](Store::apply). The writes are made or not, and are not undone.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Failed`] with the index of the first write whose test fails, [`RecordsError::Store`] as of
    /// [`apply`](Store::apply).
    fn apply_with<'a>(
        &'a self,
        call: &Transaction<'a>,
        writes: &'a [Write],
    ) -> Reply<'a, Result<TxnOutcome, RecordsError>>;

    /// Returns the status of buckets, under the limits they were used under last. Those that are full may be missing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn buckets<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'a, Result<Page<BucketStatus>, StoreError>>;

    /// Forgets buckets and their usage that was not yet written, at most [`FORGET_MAX`] at once, and returns how many.
    /// Leases on them end without making them anew.
    ///
    /// # Cancel safety
    ///
    /// If the reply is dropped before it is ready, some of the buckets may be forgotten. A repeated call forgets the others.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn forget<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<usize, StoreError>>;

    /// Makes no bucket in this namespace any more, for good: a call that would make one returns
    /// [`StoreError::NamespaceGone`].
    ///
    /// # Cancel safety
    ///
    /// If the reply is dropped before it is ready, the namespace may be closed or not. A repeated call closes it.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn close<'a>(&'a self, namespace: &'a str) -> Reply<'a, Result<(), StoreError>>;

    /// Returns the most that one process may hold ahead of a bucket under these limits, of each, so that not every take
    /// needs a call; `None` if the store takes nothing ahead.
    fn prefetch_bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        let _ = limits;
        None
    }

    /// Returns the queues in which denied callers of this process wait. The store notifies them of every bucket that it
    /// gives back to.
    fn wait_queues(&self) -> &WaitQueues;

    /// Applies a call as [`apply`](Store::apply) does, for a caller with this place among the waiters for what it takes. A
    /// store that keeps the order of the waiters of all processes denies a take behind a claim of a lesser rank. There the
    /// claims of a waiter hold back others until it is granted, [leaves](Backend::leave_queues), or does not ask again for a
    /// second.
    ///
    /// # Cancel safety
    ///
    /// As of [`apply`](Store::apply). The claims of the caller are removed.
    ///
    /// # Errors
    ///
    /// As of [`apply`](Store::apply).
    fn apply_in_turn<'a>(
        &'a self,
        call: &Transaction<'a>,
        place: QueuePlace,
    ) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        drop(place);
        self.apply(call)
    }

    /// Removes the claims of a waiter of this rank that was not granted. It begins at once, also if the reply is dropped, and
    /// the reply is ready when callers of other processes are not held back any more.
    ///
    /// # Cancel safety
    ///
    /// If the reply is dropped, the claims are removed in the background.
    fn leave_queues(&self, rank: Rank) -> Reply<'_, ()> {
        let _ = rank;
        Reply::ready(())
    }

    /// Returns what is in use of the buckets of a scope, and the hours whose usage is in no record yet: some buckets at a
    /// time, in no order, those that are idle as well. Changes nothing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn activity<'a>(
        &'a self,
        namespace: &'a str,
        scope: Scope<'a>,
        after: Option<Cursor>,
    ) -> Reply<'a, Result<Page<Activity>, StoreError>>;

    /// Returns the records of usage at these keys with what is not written yet added, each as of one instant. At most
    /// [`GETS_MAX`](crate::records::GETS_MAX). Changes nothing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Store`].
    fn usage_at<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>>;

    /// Brings the records of usage up to date.
    ///
    /// # Cancel safety
    ///
    /// If the reply is dropped before it is ready, some of the usage may be written.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn write_usage<'a>(&'a self, namespace: &'a str, scope: Scope<'a>) -> Reply<'a, Result<(), StoreError>>;

    /// Returns the bucket itself, if there is one and it is in this process: a caller that has it can take from it with
    /// nothing in between. Makes none: one that was never used would not be full under the limits that come next.
    fn pin(&self, place: &BucketRef<'_>) -> Option<LocalBucket> {
        let _ = place;
        None
    }
}

/// A set of buckets of a namespace.
///
/// # Examples
///
/// ```
/// use tollgate_store::Scope;
///
/// assert!(Scope::Entity("user-1").has("user-1", "gpt-4"));
/// assert!(!Scope::Bucket("user-1", "gpt-4").has("user-1", "budget"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// Those of an entity.
    Entity(&'a str),
    /// Those of a resource.
    Resource(&'a str),
    /// One of them.
    Bucket(&'a str, &'a str),
    /// All of the namespace.
    All,
}

/// The status of one bucket.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{Backend, BucketRef, Key, Memory, Op, Scope, Step, Store, Transaction};
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::resource("slots", 3)])?);
/// let costs = limits.costs(&demand! { slots: 2 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()?;
///
/// let page = store.buckets("app", Scope::Resource("gpt-4"), None, 100).wait()?;
/// let bucket = &page.items[0];
/// assert_eq!((bucket.entity.as_str(), bucket.limits[0].available()), ("user-1", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BucketStatus {
    /// The entity.
    pub entity: String,
    /// The resource.
    pub resource: String,
    /// The status of each limit.
    pub limits: Vec<Status>,
}

impl Scope<'_> {
    /// Returns true if the bucket of this entity and resource is one of them.
    pub fn has(&self, entity: &str, resource: &str) -> bool {
        match self {
            Scope::Entity(wanted) => entity == *wanted,
            Scope::Resource(wanted) => resource == *wanted,
            Scope::Bucket(one, two) => entity == *one && resource == *two,
            Scope::All => true,
        }
    }
}
