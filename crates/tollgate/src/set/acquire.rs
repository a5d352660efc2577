use std::future::{Future, IntoFuture};
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{AsDemand, Costs, Demand, Packed};
use tollgate_store::{BucketCell, Granted, Reply, WaitError, WaitRequest};

use super::{Backing, LimitSet, StoredBacking};
use crate::{Acquire, AcquireError, Attempt, Event, Lease, TryAcquire};

/// The future of an [`Acquire`] of a [`LimitSet`].
///
/// A waiter whose turn has come and that is not polled, as in a busy `select!`, holds others back for less than a second.
/// Then they pass it; it keeps its place, and waits again when it is polled.
///
/// # Cancel safety
///
/// Dropping it at any time leaves no trace: nothing stays taken, and the next waiter is looked at.
///
/// ```
/// use std::future::IntoFuture;
/// use tollgate::{demand, Limit, LimitSet};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let set = LimitSet::new([Limit::resource("slots", 1)])?;
/// let held = set.acquire(demand! {}).await?;
/// let waiting = set.acquire(demand! {}).into_future();
/// held.commit().await?;
/// waiting.await?.commit().await?;
/// # Ok::<(), tollgate::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "a wait begins when this is awaited"]
pub struct Acquiring<'a> {
    set: &'a LimitSet,
    holder: Option<NonZeroU64>,
    waiting: WaitingIn<'a>,
}

enum WaitingIn<'a> {
    Cell(tollgate_store::WaitFuture<'a>),
    Store(Reply<'a, Result<Lease<'a>, AcquireError>>),
    Failed(Option<AcquireError>),
}

impl<'a, D: AsDemand> TryAcquire<'a, LimitSet, D> {
    /// The answer.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::try_acquire`].
    #[inline(always)]
    pub fn wait(self) -> Result<Attempt<Lease<'a>>, AcquireError> {
        match self.source.backing() {
            Backing::Local(cell) => self.source.try_local(cell, &self.demand, self.priority),
            Backing::Stored(remote) => self.source.try_stored(remote, &self.demand, self.priority).wait(),
        }
    }
}

impl<'a, D: AsDemand> IntoFuture for TryAcquire<'a, LimitSet, D> {
    type Output = Result<Attempt<Lease<'a>>, AcquireError>;
    type IntoFuture = Reply<'a, Self::Output>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        match self.source.backing() {
            Backing::Local(cell) => Reply::ready(self.source.try_local(cell, &self.demand, self.priority)),
            Backing::Stored(remote) => self.source.try_stored(remote, &self.demand, self.priority),
        }
    }
}

impl<'a, D: AsDemand> Acquire<'a, LimitSet, D> {
    /// Waits in this thread, with no runtime, in the same queue as all waiters.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::acquire`].
    #[inline(always)]
    pub fn wait(self) -> Result<Lease<'a>, AcquireError> {
        let cell = match self.source.backing() {
            Backing::Local(cell) => cell,
            Backing::Stored(remote) => return self.wait_stored(remote),
        };
        // Mostly there is no need to wait. Otherwise the queue looks again, and knows what to do.
        let mut taken = Packed::default();
        match self.source.take_fast(cell, &self.demand, &mut taken) {
            Some(at) => Ok(Lease::bare(self.source, at, taken)),
            None => self.wait_in_queue(cell),
        }
    }

    #[cold]
    fn wait_in_queue(&self, cell: &'a Arc<BucketCell>) -> Result<Lease<'a>, AcquireError> {
        let (costs, holder) = (self.source.costs_of(&self.demand)?, self.source.next_holder());
        admit(self.source, holder, self.request(cell, costs, holder).wait())
    }

    #[cold]
    fn wait_stored(&self, remote: &'a StoredBacking) -> Result<Lease<'a>, AcquireError> {
        self.acquire_in_store(remote).wait()
    }

    fn acquire_in_store(&self, remote: &'a StoredBacking) -> Reply<'a, Result<Lease<'a>, AcquireError>> {
        let (set, wanted) = (self.source, Demand::copy_of(&self.demand));
        let policy = self.wait.policy(remote.clock(), set.0.waiters_max);
        let since = remote.clock().now();
        Reply::later(async move {
            match set.acquire_stored(remote, wanted, policy).await? {
                Attempt::Admitted(lease) => Ok(lease),
                Attempt::Denied(denial) => {
                    let waited = remote.clock().now().since(since).to_duration();
                    Err(AcquireError::TimedOut { denial, waited })
                }
            }
        })
    }

    fn request(
        &self,
        cell: &'a Arc<BucketCell>,
        costs: Costs,
        holder: Option<NonZeroU64>,
    ) -> tollgate_store::WaitFuture<'a> {
        let set = self.source;
        let (priority, deadline) = (self.wait.priority, self.wait.deadline(&set.0.clock));
        let (term, waiters_max) = (set.term(holder), set.0.waiters_max);
        cell.acquire(&set.0.clock, WaitRequest { costs, term, priority, deadline, waiters_max })
    }
}

impl<'a, D: AsDemand> IntoFuture for Acquire<'a, LimitSet, D> {
    type Output = Result<Lease<'a>, AcquireError>;
    type IntoFuture = Acquiring<'a>;

    fn into_future(self) -> Acquiring<'a> {
        let set = self.source;
        let cell = match set.backing() {
            Backing::Local(cell) => cell,
            Backing::Stored(remote) => {
                return Acquiring {
                    set,
                    holder: None,
                    waiting: WaitingIn::Store(self.acquire_in_store(remote)),
                };
            }
        };
        let costs = set.costs_of(&self.demand);
        let holder = set.next_holder();
        let waiting = match costs {
            Ok(costs) => WaitingIn::Cell(self.request(cell, costs, holder)),
            Err(error) => WaitingIn::Failed(Some(error.into())),
        };
        Acquiring { set, holder, waiting }
    }
}

impl<'a> Future for Acquiring<'a> {
    type Output = Result<Lease<'a>, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (set, holder) = (self.set, self.holder);
        match &mut self.waiting {
            WaitingIn::Cell(waiting) => {
                Pin::new(waiting).poll(context).map(|granted| admit(set, holder, granted))
            }
            WaitingIn::Store(reply) => Pin::new(reply).poll(context),
            WaitingIn::Failed(error) => {
                Poll::Ready(Err(error.take().expect("a finished future is not polled again")))
            }
        }
    }
}

fn admit(
    set: &LimitSet,
    holder: Option<NonZeroU64>,
    granted: Result<Granted, WaitError>,
) -> Result<Lease<'_>, AcquireError> {
    let reporter = &set.0.reporter;
    match granted {
        Ok(Granted { taken, costs, waited, limited_by }) => {
            let lease = Lease::new(set, taken, &costs, holder, waited);
            if let Some(duration) = waited {
                reporter.report(&Event::Waited { limit: limited_by.as_ref(), duration });
            }
            if reporter.is_watched() {
                reporter.report(&Event::Allowed);
            }
            set.report_warnings(taken);
            Ok(lease)
        }
        Err(error) => {
            let slowest = match &error {
                WaitError::TimedOut { denial, .. } => Some(denial.limited_by()),
                WaitError::QueueFull { .. } => Some(None),
                _ => None,
            };
            if let Some(slowest) = slowest {
                let limit = slowest.as_ref().map(|status| status.limit().name());
                reporter.report(&Event::Denied { limit });
            }
            Err(error.into())
        }
    }
}
