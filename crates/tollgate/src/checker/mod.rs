//! Checks with limits given by the call.

mod count;
mod remote;

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{AsDemand, Costs, Denial, Limits, Name};
use tollgate_store::{
    Backend, Clock, Granted, Key, Memory, NamespaceTable, Priority, Reply, WAITERS_MAX, WaitRequest,
};

use remote::StoredChecker;

use crate::acquire::WaitOptions;
use crate::observe::Reporter;
use crate::{Acquire, Attempt, CheckError, CheckInfo, Config, Event, Observer, TryAcquire};

/// Checks calls against limits that come with the call, for callers that store none. Clones share the counts.
///
/// Keep the checker: its counts live in it. Limits of other names that came with other calls for the same entity and
/// operation keep what was used of them.
///
/// Several buckets are checked at once and charged all or nothing. A check holds nothing, so there is nothing
/// to give back; use a [`LimitSet`](crate::LimitSet) to settle or to limit concurrency.
///
/// ```
/// use tollgate::{demand, Checker, Limit, Limits};
///
/// let checker = Checker::new();
/// let limits = Limits::new([Limit::per_minute("rpm", 10_000), Limit::per_minute("tpm", 2_000)])?;
/// let costs = demand! { rpm: 1, tpm: 1_500 };
/// assert!(checker.try_acquire("my_key", "chat", &costs, &limits).wait()?.is_admitted());
/// assert!(!checker.try_acquire("my_key", "chat", &costs, &limits).wait()?.is_admitted());
/// assert!(checker.try_acquire("your_key", "chat", &costs, &limits).wait()?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Checker {
    home: CheckerBacking,
    reporter: Reporter,
    metadata: Arc<Config>,
}

/// Where the counts are.
#[derive(Clone)]
enum CheckerBacking {
    Local(LocalChecker),
    Stored(Arc<StoredChecker>),
}

#[derive(Clone)]
struct LocalChecker {
    space: Arc<NamespaceTable>,
    clock: Clock,
}

/// A wait that is over.
struct Waited {
    /// The limit that made it wait longest.
    limit: Option<Name>,
    duration: Duration,
}

/// Costs of what an entity does by an operation, and the limits they are checked against, which
/// [`Checker::try_acquire`] and [`Checker::acquire`] are given.
///
/// ```
/// use tollgate::{demand, Checker, Limit, Limits};
///
/// let (checker, limits) = (Checker::new(), Limits::new([Limit::per_minute("rpm", 10)])?);
/// let attempt = checker.try_acquire("my_key", "chat", demand! { rpm: 1 }, &limits);
/// assert!(attempt.wait()?.is_admitted());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Debug)]
pub struct Check<'a, D> {
    entity: &'a str,
    operation: &'a str,
    costs: D,
    limits: &'a Limits,
}

impl Default for Checker {
    fn default() -> Checker {
        Checker::new()
    }
}

impl Checker {
    /// A checker with counts of its own, in memory.
    pub fn new() -> Checker {
        Checker::in_memory(&Memory::default(), "")
    }

    /// A checker whose counts are in a namespace of `memory`.
    pub fn in_memory(memory: &Memory, namespace: &str) -> Checker {
        use tollgate_store::Store as _;
        Checker::at(CheckerBacking::Local(LocalChecker {
            space: memory.namespace(namespace),
            clock: memory.clock().clone(),
        }))
    }

    fn at(home: CheckerBacking) -> Checker {
        Checker { home, reporter: Reporter::default(), metadata: Arc::default() }
    }

    /// A checker whose counts are in a namespace of a store: all checkers that open the same share them.
    ///
    /// There each limit has a bucket of its own, so that calls may bring different ones; a check is charged to all of its
    /// buckets at once, or to none. A denial has the status of the limits that the costs name. Waiters are served in the
    /// order of arrival within a process.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{demand, Checker, Limit, Limits, Memory};
    ///
    /// let store = Arc::new(Memory::default());
    /// let checker = Checker::in_store(store, "checks");
    /// let limits = Limits::new([Limit::per_minute("rpm", 1)])?;
    /// assert!(checker.try_acquire("my_key", "chat", &demand! { rpm: 1 }, &limits).wait()?.is_admitted());
    /// assert!(!checker.try_acquire("my_key", "chat", &demand! { rpm: 1 }, &limits).wait()?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_store(store: Arc<dyn Backend>, namespace: &str) -> Checker {
        Checker::at(CheckerBacking::Stored(Arc::new(StoredChecker::new(store, namespace))))
    }

    /// The same checker, with another time that its store may take to answer. It is 5 s unless this says otherwise, by the clock
    /// of the store; a check that has no answer by then fails with [`CheckError::Store`]. A checker in memory asks no store.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{Checker, Memory};
    ///
    /// let checker = Checker::in_store(Arc::new(Memory::default()), "checks").store_timeout(Duration::from_millis(200));
    /// # drop(checker);
    /// ```
    #[must_use]
    pub fn store_timeout(self, timeout: Duration) -> Checker {
        let home = match self.home {
            CheckerBacking::Stored(stored) => CheckerBacking::Stored(Arc::new(stored.with_timeout(timeout))),
            here @ CheckerBacking::Local(_) => here,
        };
        Checker { home, ..self }
    }

    /// The same checker, with an observer that is notified of what was allowed, denied and waited for, and of
    /// [which check](CheckInfo).
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use tollgate::{demand, CheckInfo, Checker, Event, Limit, Limits, Observer};
    ///
    /// #[derive(Clone, Default)]
    /// struct Log(Arc<Mutex<Vec<String>>>);
    ///
    /// impl Observer for Log {
    ///     fn observe(&self, _: &Event<'_>) {}
    ///
    ///     fn observe_check(&self, event: &Event<'_>, check: &CheckInfo<'_>) {
    ///         if let Event::Denied { limit: Some(limit) } = event {
    ///             self.0.lock().unwrap().push(format!("{} {limit} {:?}", check.entity, check.metadata.get("trace")));
    ///         }
    ///     }
    /// }
    ///
    /// let log = Log::default();
    /// let checker = Checker::new().observer(log.clone());
    /// let limits = Limits::new([Limit::per_minute("rpm", 1)])?;
    /// for trace in ["a", "b"] {
    ///     let checker = checker.metadata([("trace", trace)]);
    ///     let _ = checker.try_acquire("my_key", "chat", &demand! { rpm: 1 }, &limits).wait()?;
    /// }
    /// assert_eq!(*log.0.lock().unwrap(), [r#"my_key rpm Some("b")"#]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Checker {
        Checker { reporter: Reporter::new(Some(Arc::new(observer))), ..self }
    }

    /// Returns a checker of the same counts that passes this metadata to its [observer](Checker::observer).
    #[must_use]
    pub fn metadata<K: Into<String>, V: Into<String>>(
        &self,
        metadata: impl IntoIterator<Item = (K, V)>,
    ) -> Checker {
        let metadata = metadata.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Checker { metadata: Arc::new(metadata), ..self.clone() }
    }

    /// Charges `costs` to the `operation` of `entity`, now, or denies them with the wait.
    ///
    /// # Errors
    ///
    /// Costs without a limit, more than a capacity, or a resource among the limits; nothing is charged then. A store that
    /// did not answer. A denial is not an error.
    #[inline]
    pub fn try_acquire<'a, D: AsDemand>(
        &'a self,
        entity: &'a str,
        operation: &'a str,
        costs: D,
        limits: &'a Limits,
    ) -> TryAcquire<'a, Checker, Check<'a, D>> {
        TryAcquire::new(self, Check { entity, operation, costs, limits })
    }

    /// As [`try_acquire`](Checker::try_acquire), but waits for the longest of its buckets, in turn, and for as long as the
    /// [timeout](Acquire::timeout) or the [deadline](Acquire::deadline) says, if there is one.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves no trace.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Checker::try_acquire), and [`CheckError::TimedOut`], returned at once if it can be known at once.
    pub fn acquire<'a, D: AsDemand>(
        &'a self,
        entity: &'a str,
        operation: &'a str,
        costs: D,
        limits: &'a Limits,
    ) -> Acquire<'a, Checker, Check<'a, D>> {
        Acquire::new(self, Check { entity, operation, costs, limits })
    }

    #[inline]
    fn check<'a, D: AsDemand>(
        &'a self,
        check: Check<'a, D>,
        priority: Priority,
    ) -> Reply<'a, Result<Attempt<()>, CheckError>> {
        match &self.home {
            CheckerBacking::Local(here) => {
                let attempt = here.check(&check, priority);
                if self.reporter.is_watched() {
                    self.report_attempt(check.entity, check.operation, &attempt);
                }
                Reply::ready(attempt)
            }
            CheckerBacking::Stored(remote) => match resolve(&check.costs, check.limits) {
                Ok(costs) => self.check_stored(remote, &check, &costs, priority),
                Err(error) => Reply::ready(Err(error)),
            },
        }
    }

    fn check_stored<'a>(
        &'a self,
        remote: &'a StoredChecker,
        &Check { entity, operation, limits, .. }: &Check<'a, impl AsDemand>,
        costs: &Costs,
        priority: Priority,
    ) -> Reply<'a, Result<Attempt<()>, CheckError>> {
        let checking = remote.check(entity, operation, costs, limits, priority);
        if !self.reporter.is_watched() {
            return checking;
        }
        Reply::later(async move {
            let attempt = checking.await;
            self.report_attempt(entity, operation, &attempt);
            attempt
        })
    }

    #[cold]
    fn report_attempt(&self, entity: &str, operation: &str, attempt: &Result<Attempt<()>, CheckError>) {
        let about = CheckInfo { entity, operation, metadata: &self.metadata };
        match attempt {
            Ok(Attempt::Admitted(())) => self.reporter.report_check(&Event::Allowed, &about),
            Ok(Attempt::Denied(denial)) => self.report_denial(&about, denial),
            Err(_) => {}
        }
    }

    fn report_denial(&self, about: &CheckInfo<'_>, denial: &Denial) {
        let slowest = denial.limited_by();
        let limit = slowest.as_ref().map(|status| status.limit().name());
        self.reporter.report_check(&Event::Denied { limit }, about);
    }

    #[cold]
    fn report_waited(&self, entity: &str, operation: &str, done: &Result<Option<Waited>, CheckError>) {
        let about = CheckInfo { entity, operation, metadata: &self.metadata };
        match done {
            Ok(waited) => {
                if let Some(Waited { limit, duration }) = waited {
                    let event = Event::Waited { limit: limit.as_ref(), duration: *duration };
                    self.reporter.report_check(&event, &about);
                }
                self.reporter.report_check(&Event::Allowed, &about);
            }
            Err(CheckError::TimedOut { denial, .. }) => self.report_denial(&about, denial),
            Err(_) => {}
        }
    }

    fn check_and_wait<'a, D: AsDemand>(
        &'a self,
        Check { entity, operation, costs, limits }: Check<'a, D>,
        wait: WaitOptions,
    ) -> Reply<'a, Result<(), CheckError>> {
        let costs = match resolve(&costs, limits) {
            Ok(costs) => costs,
            Err(error) => return Reply::ready(Err(error)),
        };
        let waiting = self.waiting(entity, operation, costs, limits, wait);
        Reply::later(async move {
            let done = waiting.await;
            if self.reporter.is_watched() {
                self.report_waited(entity, operation, &done);
            }
            done.map(drop)
        })
    }

    fn waiting<'a>(
        &'a self,
        entity: &str,
        operation: &str,
        costs: Costs,
        limits: &Limits,
        wait: WaitOptions,
    ) -> Reply<'a, Result<Option<Waited>, CheckError>> {
        let here = match &self.home {
            CheckerBacking::Local(here) => here,
            CheckerBacking::Stored(remote) => {
                return remote.check_and_wait(entity, operation, &costs, limits, wait);
            }
        };
        let now = here.clock.now();
        let cell = match here.space.cell(&Key::new(&[entity, operation]), limits, now) {
            Ok(cell) => cell,
            Err(error) => return Reply::ready(Err(error.into())),
        };
        let (priority, deadline) = (wait.priority, wait.deadline(&here.clock));
        let request = WaitRequest { costs, term: None, priority, deadline, waiters_max: WAITERS_MAX };
        let limits = limits.clone();
        Reply::later(async move {
            let granted = cell.acquire(&here.clock, request).under(limits).await;
            let Granted { waited, limited_by, .. } = granted?;
            Ok(waited.map(|duration| Waited { limit: limited_by, duration }))
        })
    }
}

impl<'a, D: AsDemand> TryAcquire<'a, Checker, Check<'a, D>> {
    /// The answer.
    ///
    /// # Errors
    ///
    /// As [`Checker::try_acquire`].
    #[inline]
    pub fn wait(self) -> Result<Attempt<()>, CheckError> {
        self.into_future().wait()
    }
}

impl<'a, D: AsDemand> IntoFuture for TryAcquire<'a, Checker, Check<'a, D>> {
    type Output = Result<Attempt<()>, CheckError>;
    type IntoFuture = Reply<'a, Self::Output>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        self.source.check(self.demand, self.priority)
    }
}

impl<'a, D: AsDemand> Acquire<'a, Checker, Check<'a, D>> {
    /// Waits in this thread, with no runtime, in the same queue as all waiters.
    ///
    /// # Errors
    ///
    /// As [`Checker::acquire`].
    pub fn wait(self) -> Result<(), CheckError> {
        self.into_future().wait()
    }
}

impl<'a, D: AsDemand> IntoFuture for Acquire<'a, Checker, Check<'a, D>> {
    type Output = Result<(), CheckError>;
    type IntoFuture = Reply<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.source.check_and_wait(self.demand, self.wait)
    }
}

impl LocalChecker {
    fn check(&self, check: &Check<'_, impl AsDemand>, priority: Priority) -> Result<Attempt<()>, CheckError> {
        let limits = check.limits;
        check_kinds(limits)?;
        let mut costs = Costs::none(limits.len());
        limits.costs_into(&mut costs, &check.costs)?;
        match self.space.try_take(&self.clock, &[check.entity, check.operation], limits, &costs, priority)? {
            Ok(_) => Ok(Attempt::Admitted(())),
            Err(denial) => Ok(Attempt::Denied(denial)),
        }
    }
}

fn resolve(costs: &impl AsDemand, limits: &Limits) -> Result<Costs, CheckError> {
    check_kinds(limits)?;
    Ok(limits.costs(costs)?)
}

/// Refuses limits that a check cannot count: resources, and rules that no store can keep.
#[inline]
fn check_kinds(limits: &Limits) -> Result<(), CheckError> {
    if limits.have_resources() {
        return Err(is_resource(limits));
    }
    limits.check_storable().map_err(CheckError::Limits)
}

#[cold]
fn is_resource(limits: &Limits) -> CheckError {
    let resource = limits.iter().find(|limit| limit.is_resource());
    CheckError::Resource(resource.expect("one of them is a resource").name().clone())
}
