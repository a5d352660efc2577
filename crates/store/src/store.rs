//! The store trait, and the transactions that every store applies.

use std::time::Duration;

use tollgate_core::{Costs, Denial, Limits, Status, Tick, Usage};

use crate::{Clock, Key, LeaseTerm, Reply};

/// A store of buckets. Its only job is to make the functions of the core atomic.
///
/// A call is applied whole or not at all, and at most once for each id: a caller that lost the answer retries
/// with the same id and gets the outcome.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate_core::{Denial, Limit, Limits, Status};
/// use tollgate_store::{
///     BucketRef, Clock, Key, Memory, Reach, Reply, Step, Store, StoreError, Transaction, TxnOutcome,
/// };
///
/// /// Counts the calls that are sent to a store.
/// struct Counted<S>(S, AtomicU64);
///
/// impl<S: Store> Store for Counted<S> {
///     fn reach(&self) -> Reach {
///         self.0.reach()
///     }
///
///     fn clock(&self) -> &Clock {
///         self.0.clock()
///     }
///
///     fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
///         self.1.fetch_add(1, Ordering::Relaxed);
///         self.0.apply(call)
///     }
///
///     fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
///         self.0.evaluate(steps)
///     }
///
///     fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
///         self.0.peek(place)
///     }
///
///     fn apply_detached(&self, call: &Transaction<'_>) {
///         self.1.fetch_add(1, Ordering::Relaxed);
///         self.0.apply_detached(call);
///     }
///
///     fn new_holder_id(&self) -> u128 {
///         self.0.new_holder_id()
///     }
/// }
///
/// let store = Counted(Memory::default(), AtomicU64::new(0));
/// store.apply(&Transaction { id: None, steps: &[], metered: false }).wait()?;
/// assert_eq!(store.1.load(Ordering::Relaxed), 1);
/// # Ok::<(), StoreError>(())
/// ```
pub trait Store: Send + Sync {
    /// Returns which callers share the buckets.
    fn reach(&self) -> Reach;

    /// Returns the clock that the store stamps with.
    fn clock(&self) -> &Clock;

    /// Applies all steps, or none if a take is denied.
    ///
    /// # Cancel safety
    ///
    /// If the reply is dropped before it is ready, the call is not applied, or what it took is given back. Steps that take
    /// nothing may be applied all the same.
    ///
    /// # Errors
    ///
    /// [`StoreError`]. After [`StoreError::Unavailable`] the call may have been applied; a retry with the same id returns its
    /// outcome.
    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>>;

    /// Returns the denial that every step that takes would get now, in order, and takes nothing: that of a step that would
    /// pass is ready now. A bucket that was used under limits of a later version is evaluated under those, by name.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>>;

    /// Returns the status of every limit of a bucket. A bucket that does not exist has that of a fresh one, and one that was
    /// used under limits of a later version has that of those.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>>;

    /// Applies a detached call, such as the end of a lease that was dropped: no caller waits for its answer. Never
    /// blocks.
    fn apply_detached(&self, call: &Transaction<'_>);

    /// Applies a detached call as [`apply_detached`](Store::apply_detached) does, and calls `callback` with the outcome once
    /// the call is applied: in any thread, with no lock held. `callback` is dropped without being called if the call was not
    /// applied, or if the store wraps another one and does not get the outcome.
    fn apply_detached_with(&self, call: &Transaction<'_>, callback: OutcomeCallback) {
        self.apply_detached(call);
        drop(callback);
    }

    /// Returns an id for a holder of resources, unlike that of any other.
    fn new_holder_id(&self) -> u128;

    /// Returns an id as [`new_holder_id`](Store::new_holder_id) does, for a holder that lives as long as its process. Stores
    /// whose processes can look for each other go by that, and not by the clock.
    fn new_living_holder(&self) -> u128 {
        self.new_holder_id()
    }
}

/// Receives the outcome of a detached call.
pub type OutcomeCallback = Box<dyn FnOnce(&TxnOutcome) + Send>;

/// The callers that share the buckets of a store.
///
/// # Examples
///
/// ```
/// use tollgate_store::{Memory, Reach, Store};
///
/// // A limit that all hosts share needs a store that they can reach.
/// let store = Memory::default();
/// assert!(store.reach() < Reach::Fleet);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reach {
    /// The threads and tasks of one process.
    Process,
    /// The processes of one host.
    Host,
    /// Every host that can reach the store.
    Fleet,
}

/// The id of a call, unique among all callers.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Memory, Op, OpId, Step, Store, Transaction, random_id};
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::resource("slots", 3)])?);
/// let costs = limits.costs(&demand! { slots: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let call = Transaction { id: Some(OpId(random_id())), steps: &steps, metered: false };
/// assert_eq!(store.apply(&call).wait()?, store.apply(&call).wait()?);
/// assert_eq!(store.peek(&place).wait()?[0].available(), 2, "it was applied once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpId(pub u128);

/// Steps that are applied together.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Memory, Op, Step, Store, Transaction, TxnOutcome};
///
/// let store = Memory::default();
/// let keys = [Key::new(&["user-1", "gpt-4"]), Key::new(&["team", "gpt-4"])];
/// let limits = [Limits::new([Limit::per_day("rpd", 5)])?, Limits::new([Limit::per_day("rpd", 1)])?];
/// let costs = limits[0].costs(&demand! { rpd: 1 })?;
/// let place = |index: usize| BucketRef { namespace: "app", key: &keys[index], limits: &limits[index] };
/// let take = |index| Step { place: place(index), op: Op::Take { costs: &costs, term: None } };
/// let call = Transaction { id: None, steps: &[take(0), take(1)], metered: true };
/// assert!(matches!(store.apply(&call).wait()?, TxnOutcome::Done(_)));
/// // The team has nothing left, so nothing is taken of the user's bucket either.
/// assert!(matches!(store.apply(&call).wait()?, TxnOutcome::Denied(_)));
/// assert_eq!(store.peek(&place(0)).wait()?[0].available(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Transaction<'a> {
    /// With an id, the call is applied at most once however often it is sent.
    pub id: Option<OpId>,
    /// The steps, each on another bucket.
    pub steps: &'a [Step<'a>],
    /// True if the usage is counted, by hour and day and month, for the entity and the resource that are the two parts of
    /// each key.
    pub metered: bool,
}

/// One bucket, and the operation on it.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Op, Step};
///
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::per_minute("rpm", 10)])?);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let take = Step { place, op: Op::Take { costs: &costs, term: None } };
/// let reset = Step { place, op: Op::Reset };
/// assert!(take.takes().is_some() && take.creates());
/// assert!(reset.takes().is_none() && !reset.creates());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// The bucket.
    pub place: BucketRef<'a>,
    /// The operation.
    pub op: Op<'a>,
}

/// A bucket, and the limits that a call is made under.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::{BucketRef, Key, Memory, Store};
///
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::per_minute("rpm", 10)])?);
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// assert_eq!(Memory::default().peek(&place).wait()?[0].available(), 10, "a bucket that was never used");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BucketRef<'a> {
    /// The namespace. Namespaces share nothing.
    pub namespace: &'a str,
    /// The key within the namespace.
    pub key: &'a Key,
    /// For a take or a peek, the limits in force: a bucket that was used under others is carried over, unless those
    /// were of a later version. For a settlement or a top-up, the limits that the amounts are counted in.
    pub limits: &'a Limits,
}

/// An operation on a bucket.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Memory, Op, Step, Store, StoreError, Transaction};
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::per_day("rpd", 10)])?);
/// let (three, one) = (limits.costs(&demand! { rpd: 3 })?, limits.costs(&demand! { rpd: 1 })?);
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let available_after = |op| -> Result<i64, StoreError> {
///     store.apply(&Transaction { id: None, steps: &[Step { place, op }], metered: false }).wait()?;
///     Ok(store.peek(&place).wait()?[0].available())
/// };
/// assert_eq!(available_after(Op::Take { costs: &three, term: None })?, 7);
/// assert_eq!(available_after(Op::TopUp(&one))?, 8);
/// assert_eq!(available_after(Op::Reset)?, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Op<'a> {
    /// Takes all of the costs, or denies the call.
    Take {
        /// The costs to take.
        costs: &'a Costs,
        /// The holder of resources, if they expire without its heartbeats.
        term: Option<LeaseTerm>,
    },
    /// Settles what was taken with what was used. A bucket that does not exist is full, so there is nothing to give back;
    /// but what was used beyond is charged to it all the same.
    Settle(Usage<'a>),
    /// Settles as [`Op::Settle`] does, but does not make a bucket again that was [forgotten](crate::Backend::forget) since,
    /// and counts nothing of it.
    SettleExisting(Usage<'a>),
    /// Adds credit that no caller had taken, up to what is full.
    TopUp(&'a Costs),
    /// Makes the bucket a fresh one. A holder of a resource holds it no more.
    Reset,
    /// Keeps a holder's resources for another term.
    Renew(LeaseTerm),
}

/// The outcome of a call.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Memory, Op, Step, Store, Transaction, TxnOutcome};
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::resource("slots", 1)])?);
/// let costs = limits.costs(&demand! { slots: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// let call = Transaction { id: None, steps: &steps, metered: false };
/// let answers = [store.apply(&call).wait()?, store.apply(&call).wait()?].map(|outcome| match outcome {
///     TxnOutcome::Done(done) => format!("{} step was applied", done.len()),
///     TxnOutcome::Denied(denials) => format!("{:?} is short", denials[0].limited_by().map(|it| it.requested())),
///     TxnOutcome::Stale(step) => format!("step {step} has old limits"),
///     _ => "unknown".into(),
/// });
/// assert_eq!(answers, ["1 step was applied", "Some(1) is short"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TxnOutcome {
    /// Everything was applied.
    Done(Vec<StepOutcome>),
    /// A take was denied and nothing was applied. The denial of every step that takes, in order.
    Denied(Vec<Denial>),
    /// The bucket of this step was used under limits of a later version, and nothing was applied. The caller reads the
    /// limits again and retries.
    Stale(usize),
}

/// The outcome of one step.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Span};
/// use tollgate_store::{
///     BucketRef, Key, LeaseTerm, Memory, Op, Step, StepOutcome, Store, Transaction, TxnOutcome,
/// };
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["pool"]), Limits::new([Limit::resource("slots", 1)])?);
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let term = LeaseTerm { holder: store.new_holder_id(), ttl: Span::from_secs(30) };
/// let heartbeat = [Step { place, op: Op::Renew(term) }];
/// let outcome = store.apply(&Transaction { id: None, steps: &heartbeat, metered: false }).wait()?;
/// assert_eq!(outcome, TxnOutcome::Done(vec![StepOutcome::Renewed(false)]), "it holds nothing");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// Taken.
    Taken(Taken),
    /// Settled.
    Settled,
    /// Topped up, or reset.
    Changed,
    /// Renewed, if the holder was still known.
    Renewed(bool),
}

/// Something that was taken.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Usage, demand};
/// use tollgate_store::{
///     BucketRef, Key, Memory, Op, Step, StepOutcome, Store, StoreError, Transaction, TxnOutcome,
/// };
///
/// let store = Memory::default();
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::per_day("tpd", 1_000)])?);
/// let reserved = limits.costs(&demand! { tpd: 600 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let apply = |op| store.apply(&Transaction { id: None, steps: &[Step { place, op }], metered: false }).wait();
/// let TxnOutcome::Done(done) = apply(Op::Take { costs: &reserved, term: None })? else { panic!("it fits") };
/// let StepOutcome::Taken(taken) = done[0] else { panic!("it was taken") };
/// apply(Op::Settle(Usage { at: taken.at, reserved: &reserved, used: &[150], holder: None }))?;
/// assert_eq!(store.peek(&place).wait()?[0].available(), 850);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The time at which it was taken. A refund needs it.
    pub at: Tick,
    /// One bit for each limit, by its place, that warned: see [`Bucket::warnings`].
    ///
    /// [`Bucket::warnings`]: tollgate_core::Bucket::warnings
    pub warnings: u32,
}

/// The reason that a store could not answer. A denial is not an error.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::StoreError;
///
/// /// Returns true if a retry may succeed.
/// fn is_transient(error: &StoreError) -> bool {
///     matches!(error, StoreError::Unavailable(..))
/// }
///
/// let error = StoreError::Unavailable(Duration::from_secs(2), "connection reset".into());
/// assert!(is_transient(&error));
/// assert_eq!(error.to_string(), "the store did not answer within 2s: connection reset");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The namespace has as many keys as it may, and none that was looked at is idle. A full namespace is looked
    /// through a part at a time, so one of very many keys that is idle may be found by a later call only.
    #[error(
        "namespace {namespace:?} has {keys_max} keys in use, which is its bound; raise keys_max or use fewer"
    )]
    NamespaceFull {
        /// The namespace.
        namespace: String,
        /// Its bound.
        keys_max: usize,
    },
    /// The namespace was closed: it is being purged, or has been.
    #[error("namespace {0:?} is gone; register it again to get a new one")]
    NamespaceGone(String),
    /// The store refuses the call, and would refuse it again: no permission, a damaged file, a foreign one.
    #[error("the store refuses: {0}")]
    Refused(String),
    /// The call itself is wrong.
    #[error("the call is not valid: {0}")]
    BadCall(String),
    /// The store did not answer within this time, which is zero if it failed at once, because it is full, say. It is not
    /// known if the call was applied; the caller may retry with the same id.
    #[error("{what}: {1}", what = unanswered(*.0))]
    Unavailable(Duration, String),
}

/// Describes a call that was not answered.
fn unanswered(waited: Duration) -> String {
    match waited {
        Duration::ZERO => "the store cannot be used just now".into(),
        waited => format!("the store did not answer within {waited:?}"),
    }
}
