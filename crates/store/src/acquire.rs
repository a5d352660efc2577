//! Waiting for a cell: a future with a place in its queue.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate_core::{Costs, DemandError, Denial, Limits, Name, Ready, Tick};

use crate::Taken;
use crate::block_on::block_on;
use crate::cell_queue::{QueuedWaiter, Rank, WaitResult};
use crate::locked::LockedBucket;
use crate::sync::MutexGuard;
use crate::{BucketCell, Clock, LeaseTerm, Priority, WAITERS_MAX};

/// A request to wait for: what a caller wants to take, and how long it waits.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::{BucketCell, Clock, Key, Priority, WaitRequest};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let cell = BucketCell::new(Key::new(&["jobs"]), limits.clone(), Tick::ZERO);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// // A batch job that others may overtake, in a queue of at most 50 waiters.
/// let request = WaitRequest { priority: Priority::Batch, waiters_max: 50, ..WaitRequest::of(costs) };
/// assert!(cell.acquire(&Clock::system(), request).wait().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WaitRequest {
    /// The costs to take.
    pub costs: Costs,
    /// The holder of the resources, if they expire.
    pub term: Option<LeaseTerm>,
    /// The priority among waiters.
    pub priority: Priority,
    /// The time at which the wait times out.
    pub deadline: Option<Tick>,
    /// The number of callers that may wait at once.
    pub waiters_max: usize,
}

/// A grant: what was taken, and how long the caller waited for it.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick, Usage, demand};
/// use tollgate_store::{BucketCell, Key, ManualClock, WaitRequest};
///
/// let clock = ManualClock::at(Tick::from_secs(10)).clock();
/// let limits = Limits::new([Limit::per_minute("tpm", 1_000)])?;
/// let cell = BucketCell::new(Key::new(&["user-1"]), limits.clone(), Tick::ZERO);
/// let request = WaitRequest::of(limits.costs(&demand! { tpm: 600 })?);
/// let granted = cell.acquire(&clock, request).wait()?;
/// assert_eq!(granted.waited, None, "there was no queue");
/// // What the call did not use is given back.
/// let usage = Usage { at: granted.taken.at, reserved: &granted.costs, used: &[150], holder: None };
/// cell.settle(&clock, &limits, &usage);
/// assert_eq!(cell.peek(&clock)[0].available(), 850);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// When it was taken, which a refund needs, and the limits that warned.
    pub taken: Taken,
    /// The costs that were taken.
    pub costs: Costs,
    /// The length of the wait, if there was any.
    pub waited: Option<Duration>,
    /// The limit with the longest wait, as of the start.
    pub limited_by: Option<Name>,
}

/// The wait ended without a grant.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Span, Tick, demand};
/// use tollgate_store::{BucketCell, Key, ManualClock, WaitError, WaitRequest};
///
/// let clock = ManualClock::at(Tick::from_secs(10)).clock();
/// let limits = Limits::new([Limit::per_minute("rpm", 1)])?;
/// let cell = BucketCell::new(Key::new(&["user-1"]), limits.clone(), Tick::ZERO);
/// let request = WaitRequest::of(limits.costs(&demand! { rpm: 1 })?);
/// cell.acquire(&clock, request.clone()).wait()?;
/// // The next request would be granted after a minute, and the caller has a second.
/// let request = WaitRequest { deadline: Some(clock.now() + Span::from_secs(1)), ..request };
/// let Err(WaitError::TimedOut { denial, waited }) = cell.acquire(&clock, request).wait() else {
///     panic!("it cannot be granted in time");
/// };
/// assert!(waited.is_zero() && denial.wait().is_some_and(|wait| wait.as_secs() > 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The deadline passed, or it was known at the start that it would pass first.
    #[error("not admitted before the deadline, after waiting {waited:?}: {denial}")]
    TimedOut {
        /// The denial, with the wait that it would have taken.
        denial: Box<Denial>,
        /// The length of the wait; zero if it was known at the start that it could not fit.
        waited: Duration,
    },
    /// The queue is full.
    #[error("{waiting} wait for this already, and at most {max} may; slow down or raise the bound")]
    QueueFull {
        /// The number of callers that wait.
        waiting: usize,
        /// The number of callers that may.
        max: usize,
    },
    /// The bucket was forgotten, with all of its waiters.
    #[error("the bucket was forgotten; ask again to get a new one")]
    Gone,
    /// The limits were lowered, and the request can never be granted any more.
    #[error(transparent)]
    Impossible(#[from] DemandError),
}

impl WaitRequest {
    /// Returns a request that waits for `costs` without a deadline.
    pub fn of(costs: Costs) -> WaitRequest {
        WaitRequest {
            costs,
            term: None,
            priority: Priority::default(),
            deadline: None,
            waiters_max: WAITERS_MAX,
        }
    }
}

/// A wait in the queue of a [`BucketCell`]. Does nothing until it is polled.
///
/// A waiter that is granted what it waits for takes it from then on, and is woken. If it is not polled within a second,
/// others may take what it was granted; it keeps its rank, and waits again when it is polled.
///
/// # Cancel safety
///
/// Dropping it at any time leaves no trace: its place in the queue is gone, a grant that it has not collected is
/// given back, and the next waiter is served.
///
/// # Examples
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use tollgate_core::{Limit, Limits, Span, Tick, demand};
/// use tollgate_store::{BucketCell, Key, ManualClock, WaitRequest};
///
/// let manual = ManualClock::at(Tick::from_secs(10));
/// let clock = manual.clock();
/// let limits = Limits::new([Limit::per_minute("rpm", 1)])?;
/// let cell = BucketCell::new(Key::new(&["user-1"]), limits.clone(), Tick::ZERO);
/// let request = WaitRequest::of(limits.costs(&demand! { rpm: 1 })?);
/// cell.acquire(&clock, request.clone()).wait()?;
///
/// let mut waiting = pin!(cell.acquire(&clock, request));
/// let mut context = Context::from_waker(Waker::noop());
/// assert!(waiting.as_mut().poll(&mut context).is_pending());
/// manual.advance(Span::from_secs(60));
/// assert!(waiting.as_mut().poll(&mut context).is_ready());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a wait begins when this is awaited"]
pub struct WaitFuture<'a> {
    cell: &'a Arc<BucketCell>,
    clock: &'a Clock,
    request: WaitRequest,
    under: Option<Limits>,
    stage: WaitStage,
}

enum WaitStage {
    New,
    Queued(Rank, Option<Name>),
    Done,
}

impl BucketCell {
    /// Waits until the request is granted, in the order of the queue.
    pub fn acquire<'a>(self: &'a Arc<Self>, clock: &'a Clock, request: WaitRequest) -> WaitFuture<'a> {
        WaitFuture { cell: self, clock, request, under: None, stage: WaitStage::New }
    }
}

impl WaitFuture<'_> {
    /// Puts `limits` in force when the wait begins, beside those of other names; the costs are counted in these.
    ///
    /// Without it they must be counted in the limits of the cell, and no caller may have changed which limits those
    /// are, or their order, before the wait begins.
    pub fn under(mut self, limits: Limits) -> Self {
        self.under = Some(limits);
        self
    }

    /// Waits in this thread, with no runtime.
    ///
    /// # Errors
    ///
    /// As awaiting it.
    pub fn wait(self) -> Result<Granted, WaitError> {
        block_on(self)
    }

    fn enter(&mut self, waker: &Waker) -> Poll<Result<Granted, WaitError>> {
        let now = self.clock.now();
        let mut inner = self.cell.lock();
        if let Some(limits) = self.under.take().filter(|limits| !inner.is_under(limits)) {
            self.request.costs = inner.join(now, &limits, &self.request.costs);
        }
        let outcome = self.enter_locked(&mut inner, now, waker);
        // It stands in the queue now, or the limits have changed for those who do.
        if inner.waiting.is_some() {
            let after = inner.serve(now);
            self.cell.finish(inner, after, self.clock);
        }
        outcome
    }

    fn enter_locked(
        &mut self,
        inner: &mut LockedBucket,
        now: Tick,
        waker: &Waker,
    ) -> Poll<Result<Granted, WaitError>> {
        if inner.is_removed() {
            return Poll::Ready(Err(WaitError::Gone));
        }
        if let Some(impossible) = inner.limits.impossible(&self.request.costs) {
            return Poll::Ready(Err(impossible.into()));
        }
        let WaitRequest { costs, term, priority, .. } = &self.request;
        let denial = match inner.try_take(now, costs, *term, *priority) {
            Ok(taken) => {
                let costs = self.request.costs.clone();
                return Poll::Ready(Ok(Granted { taken, costs, waited: None, limited_by: None }));
            }
            Err(denial) => denial,
        };
        if let Err(error) = self.check_wait(inner, &denial, now) {
            return Poll::Ready(Err(error));
        }
        let limited_by = denial.limited_by().map(|status| status.limit().name().clone());
        let rank = self.enqueue(inner, now, waker.clone());
        self.stage = WaitStage::Queued(rank, limited_by);
        Poll::Pending
    }

    /// Returns an error if the queue is full, or if the wait cannot fit.
    fn check_wait(&self, inner: &LockedBucket, denial: &Denial, now: Tick) -> Result<(), WaitError> {
        let waiting = inner.waiting.as_ref().map_or(0, |waiting| waiting.queue.len());
        if waiting >= self.request.waiters_max {
            return Err(WaitError::QueueFull { waiting, max: self.request.waiters_max });
        }
        let cannot_fit = match (self.request.deadline, denial.earliest()) {
            (Some(deadline), Ready::At(ready)) => ready > deadline || deadline <= now,
            (Some(deadline), _) => deadline <= now,
            (None, _) => false,
        };
        if cannot_fit {
            return Err(WaitError::TimedOut { denial: Box::new(denial.clone()), waited: Duration::ZERO });
        }
        Ok(())
    }

    fn enqueue(&mut self, inner: &mut LockedBucket, now: Tick, waker: Waker) -> Rank {
        let WaitRequest { term, priority, deadline, .. } = self.request;
        let waiter = QueuedWaiter { costs: self.request.costs.clone(), term, since: now, deadline, waker };
        inner.waiting.get_or_insert_default().queue.push(priority, waiter)
    }

    /// Returns the result of the wait; while there is none, leaves `waker` to be woken.
    fn poll_result(&mut self, rank: Rank, waker: &Waker) -> Option<WaitResult> {
        // Declared before the lock is taken, so dropped after it is free.
        let _replaced;
        let mut inner = self.cell.lock();
        let queue = &mut inner.waiting.as_mut()?.queue;
        if queue.take_place_again(rank, waker) {
            return self.return_to_queue(inner, rank);
        }
        let Some(result) = queue.take_result(rank) else {
            _replaced = queue.leave_waker(rank, waker);
            return None;
        };
        // The last waiter to collect its result leaves nothing behind.
        inner.drop_idle_queue(self.clock.now());
        Some(result)
    }

    /// Serves a waiter that was passed over and is in the queue again, and returns its result.
    fn return_to_queue(&self, mut inner: MutexGuard<'_, LockedBucket>, rank: Rank) -> Option<WaitResult> {
        let now = self.clock.now();
        let after = inner.serve(now);
        let result = inner.waiting.as_mut().and_then(|waiting| waiting.queue.take_result(rank));
        inner.drop_idle_queue(now);
        self.cell.finish(inner, after, self.clock);
        result
    }
}

impl Future for WaitFuture<'_> {
    type Output = Result<Granted, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let (rank, limited_by) = match &mut this.stage {
            WaitStage::New => {
                let outcome = this.enter(context.waker());
                if outcome.is_ready() {
                    this.stage = WaitStage::Done;
                }
                return outcome;
            }
            WaitStage::Queued(rank, limited_by) => (*rank, limited_by.take()),
            WaitStage::Done => panic!("a wait was polled after its end"),
        };
        let Some(result) = this.poll_result(rank, context.waker()) else {
            this.stage = WaitStage::Queued(rank, limited_by);
            return Poll::Pending;
        };
        this.stage = WaitStage::Done;
        Poll::Ready(match result {
            WaitResult::Granted { taken, waited, waiter, .. } => {
                let waited = Some(waited.to_duration());
                Ok(Granted { taken, costs: waiter.costs, waited, limited_by })
            }
            WaitResult::TimedOut { denial, waited } => {
                Err(WaitError::TimedOut { denial, waited: waited.to_duration() })
            }
            WaitResult::Impossible(why) => Err(why.into()),
            WaitResult::Gone => Err(WaitError::Gone),
        })
    }
}

impl Drop for WaitFuture<'_> {
    fn drop(&mut self) {
        if let WaitStage::Queued(rank, _) = self.stage {
            self.cell.cancel(self.clock, rank, self.request.term);
        }
    }
}
