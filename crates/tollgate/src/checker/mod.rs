//! Checks with limits given by the call.

mod remote;

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{AsDemand, Costs, Denial, Limits, Span};
use tollgate_store::{Backend, Clock, Key, Memory, Priority, Reply, Request, Space, WAITERS_MAX};

use remote::Remote;

use crate::{AcquireError, CheckError};

/// Checks calls against limits that come with the call, for callers who keep none. Cloning shares the counts.
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
/// assert!(checker.check("my_key", "chat", &costs, &limits).wait()?.is_admitted());
/// assert!(!checker.check("my_key", "chat", &costs, &limits).wait()?.is_admitted());
/// assert!(checker.check("your_key", "chat", &costs, &limits).wait()?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Checker(Home);

/// Where the counts are.
#[derive(Clone)]
enum Home {
    Here(Here),
    There(Arc<Remote>),
}

#[derive(Clone)]
struct Here {
    space: Arc<Space>,
    clock: Clock,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Admitted, and charged.
    Admitted,
    /// Denied: the status of every limit, and the exact wait. Nothing was charged.
    Denied(Box<Denial>),
}

impl Verdict {
    /// Whether it was admitted.
    pub fn is_admitted(&self) -> bool {
        matches!(self, Verdict::Admitted)
    }
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
        Checker(Home::Here(Here { space: memory.space(namespace), clock: memory.clock().clone() }))
    }

    /// A checker whose counts are in a namespace of a store: everybody who opens the same shares them.
    ///
    /// There each limit has a bucket of its own, so that calls may bring different ones; a check is charged to all of its
    /// buckets at once, or to none. A denial says how the limits stand that the costs name. Who waits is served in the
    /// order of arrival within a process.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{demand, Checker, Limit, Limits, Memory};
    ///
    /// let store = Arc::new(Memory::default());
    /// let checker = Checker::in_store(store, "checks");
    /// let limits = Limits::new([Limit::per_minute("rpm", 1)])?;
    /// assert!(checker.check("my_key", "chat", &demand! { rpm: 1 }, &limits).wait()?.is_admitted());
    /// assert!(!checker.check("my_key", "chat", &demand! { rpm: 1 }, &limits).wait()?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_store(store: Arc<dyn Backend>, namespace: &str) -> Checker {
        Checker(Home::There(Arc::new(Remote::new(store, namespace))))
    }

    /// Charges `costs` to what `entity` does by `operation`, or says why not.
    ///
    /// # Errors
    ///
    /// Costs without a limit, more than a capacity, or a resource among the limits; nothing is charged then. A store that
    /// did not answer.
    #[inline]
    pub fn check(
        &self,
        entity: &str,
        operation: &str,
        costs: &impl AsDemand,
        limits: &Limits,
    ) -> Reply<'_, Result<Verdict, CheckError>> {
        match &self.0 {
            Home::Here(here) => Reply::ready(here.check(entity, operation, costs, limits)),
            Home::There(remote) => match resolve(costs, limits) {
                Ok(costs) => remote.check(entity, operation, &costs, limits),
                Err(error) => Reply::ready(Err(error)),
            },
        }
    }

    /// As [`check`](Checker::check), but waits for the longest of its buckets, in turn, and for at most
    /// `max_wait`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves no trace.
    ///
    /// # Errors
    ///
    /// As [`check`](Checker::check), and [`CheckError::TimedOut`], told at once if it can be told at once.
    pub fn check_and_wait<'a>(
        &'a self,
        entity: &str,
        operation: &str,
        costs: &impl AsDemand,
        limits: &Limits,
        max_wait: impl Into<Option<Duration>>,
    ) -> Reply<'a, Result<(), CheckError>> {
        let costs = match resolve(costs, limits) {
            Ok(costs) => costs,
            Err(error) => return Reply::ready(Err(error)),
        };
        let max_wait = max_wait.into();
        let here = match &self.0 {
            Home::Here(here) => here,
            Home::There(remote) => return remote.check_and_wait(entity, operation, &costs, limits, max_wait),
        };
        let now = here.clock.now();
        let cell = match here.space.cell(&Key::new(&[entity, operation]), limits, now) {
            Ok(cell) => cell,
            Err(error) => return Reply::ready(Err(AcquireError::from(error).into())),
        };
        let deadline = max_wait.map(|wait| now + Span::covering(wait));
        let request =
            Request { costs, term: None, priority: Priority::default(), deadline, waiters_max: WAITERS_MAX };
        let limits = limits.clone();
        Reply::later(async move {
            cell.acquire(&here.clock, request).under(limits).await.map_err(AcquireError::from)?;
            Ok(())
        })
    }
}

impl Here {
    fn check(
        &self,
        entity: &str,
        operation: &str,
        costs: &impl AsDemand,
        limits: &Limits,
    ) -> Result<Verdict, CheckError> {
        let costs = resolve(costs, limits)?;
        let taken = self.space.try_take(&self.clock, &[entity, operation], limits, &costs);
        match taken.map_err(AcquireError::from)? {
            Ok(_) => Ok(Verdict::Admitted),
            Err(denial) => Ok(Verdict::Denied(denial)),
        }
    }
}

fn resolve(costs: &impl AsDemand, limits: &Limits) -> Result<Costs, CheckError> {
    if let Some(resource) = limits.iter().find(|limit| limit.is_resource()) {
        return Err(CheckError::Resource(resource.name().clone()));
    }
    Ok(limits.costs(costs)?)
}
