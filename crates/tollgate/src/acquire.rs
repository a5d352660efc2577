//! Builders of demands on every type: `try_acquire` answers now, `acquire` waits.

use std::time::{Duration, Instant};

use tollgate_core::{Span, Tick};
use tollgate_store::{Clock, Priority};

use crate::admission::WaitPolicy;

/// A demand on `S` that is admitted now or not at all: `.await` the answer in a task, or `.wait()` for it in a thread.
///
/// `S` is a [`LimitSet`](crate::LimitSet), a [`LimitPool`](crate::LimitPool), a [`Limiter`](crate::Limiter) or a
/// [`Checker`](crate::Checker). Nothing is taken before this is awaited or waited for.
///
/// # Cancel safety
///
/// Dropping it at any time leaves nothing taken but what a lease that is dropped leaves.
///
/// ```
/// use tollgate::{demand, Attempt, Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::per_minute("rpm", 1)])?;
/// assert!(set.try_acquire(demand! { rpm: 1 }).wait()?.is_admitted());
/// match set.try_acquire(demand! { rpm: 1 }).wait()? {
///     Attempt::Admitted(_) => unreachable!("one is all there is"),
///     Attempt::Denied(denial) => assert!(denial.wait().is_some(), "when to come back"),
/// }
/// # Ok::<(), tollgate::Error>(())
/// ```
#[must_use = "nothing is taken until this is awaited or waited for"]
#[derive(Debug)]
pub struct TryAcquire<'a, S, D> {
    pub(crate) source: &'a S,
    pub(crate) demand: D,
    pub(crate) priority: Priority,
}

/// A demand on `S` that waits until it is admitted: say for how long, then `.await` it in a task or `.wait()` for it in a
/// thread. Tasks and threads wait in the same queue.
///
/// `S` is a [`LimitSet`](crate::LimitSet), a [`LimitPool`](crate::LimitPool), a [`Limiter`](crate::Limiter) or a
/// [`Checker`](crate::Checker).
///
/// # Cancel safety
///
/// Dropping it at any time leaves no trace: nothing stays taken, and the next waiter is considered.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{demand, AcquireError, Limit, LimitSet, Priority};
///
/// let set = LimitSet::new([Limit::per_hour("jobs", 1)])?;
/// let first = set.acquire(demand! { jobs: 1 }).priority(Priority::Interactive).wait()?;
///
/// // The next one fits in an hour. The error is returned at once, because a second is not enough.
/// let error = set.acquire(demand! { jobs: 1 }).timeout(Duration::from_secs(1)).wait().unwrap_err();
/// assert!(matches!(error, AcquireError::TimedOut { waited: Duration::ZERO, .. }));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[must_use = "a wait begins when this is awaited or waited for"]
#[derive(Debug)]
pub struct Acquire<'a, S, D> {
    pub(crate) source: &'a S,
    pub(crate) demand: D,
    pub(crate) wait: WaitOptions,
}

/// For how long a demand waits, and before which others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitOptions {
    pub(crate) priority: Priority,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
}

impl WaitOptions {
    /// Returns the policy of a wait that begins now.
    pub(crate) fn policy(&self, clock: &Clock, waiters_max: usize) -> WaitPolicy {
        WaitPolicy { waits: true, priority: self.priority, deadline: self.deadline(clock), waiters_max }
    }

    /// Subtracts the time that has passed from the timeout.
    pub(crate) fn spend(&mut self, passed: Duration) {
        self.timeout = self.timeout.map(|timeout| timeout.saturating_sub(passed));
    }

    /// Returns the deadline by `clock` of a wait that begins now.
    #[inline]
    pub(crate) fn deadline(&self, clock: &Clock) -> Option<Tick> {
        if self.timeout.is_none() && self.deadline.is_none() {
            return None;
        }
        let after = self.timeout.map(|timeout| clock.now() + Span::covering(timeout));
        [after, self.deadline.map(|instant| clock.tick_at(instant))].into_iter().flatten().min()
    }
}

impl<'a, S, D> TryAcquire<'a, S, D> {
    #[inline(always)]
    pub(crate) fn new(source: &'a S, demand: D) -> TryAcquire<'a, S, D> {
        TryAcquire { source, demand, priority: Priority::default() }
    }

    /// Sets which waiters it may overtake: those that a waiter of this priority would. See [`Priority`].
    pub fn priority(mut self, priority: Priority) -> TryAcquire<'a, S, D> {
        self.priority = priority;
        self
    }
}

impl<'a, S, D> Acquire<'a, S, D> {
    #[inline(always)]
    pub(crate) fn new(source: &'a S, demand: D) -> Acquire<'a, S, D> {
        Acquire { source, demand, wait: WaitOptions::default() }
    }

    /// Waits no longer than this, counted from when the wait begins. If the wait cannot fit, the error is returned at once.
    pub fn timeout(mut self, timeout: Duration) -> Acquire<'a, S, D> {
        self.wait.timeout = Some(timeout);
        self
    }

    /// Waits no later than this. If the wait cannot fit, the error is returned at once. With a
    /// [timeout](Acquire::timeout) as well, the earlier of the two holds.
    pub fn deadline(mut self, deadline: Instant) -> Acquire<'a, S, D> {
        self.wait.deadline = Some(deadline);
        self
    }

    /// Sets which waiters go first. See [`Priority`].
    pub fn priority(mut self, priority: Priority) -> Acquire<'a, S, D> {
        self.wait.priority = priority;
        self
    }
}
