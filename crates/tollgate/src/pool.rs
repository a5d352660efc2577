//! Limit pools: several sets to spread over.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::ops::Index;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate_core::{AsDemand, Demand, Ready};
use tollgate_store::{Priority, Reply, StoreError, random_u64};

use crate::acquire::WaitOptions;
use crate::set::Backing;
use crate::{Acquire, AcquireError, Attempt, Lease, LimitSet, PoolError, SetStatus, TryAcquire};

type PoolReply<'a> = Result<Attempt<Lease<'a>>, AcquireError>;

/// How a pool chooses the set to try first.
///
/// ```
/// use tollgate::{Limit, LimitPool, LimitSet, Spread};
///
/// let account = || LimitSet::new([Limit::per_minute("rpm", 60)]);
/// let pool = LimitPool::new([account()?, account()?])?.spread(Spread::Soonest);
/// assert!(pool.try_acquire(tollgate::demand! { rpm: 1 }).wait()?.is_admitted());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spread {
    /// One after the other, starting at the index of the worker.
    #[default]
    RoundRobin,
    /// Any, with no state.
    Random,
    /// The one that can admit the demand soonest.
    Soonest,
}

/// Chooses the set that a pool tries first by a rule of its own: the cheapest account, say, or the region nearest to the
/// caller. Functions from the sets to a place are such rules.
///
/// ```
/// use tollgate::{demand, Limit, LimitPool, LimitSet};
///
/// let account = |name| LimitSet::builder().limits([Limit::per_minute("rpm", 1)]).config("account", name).build();
/// let pool = LimitPool::new([account("dear")?, account("cheap")?])?
///     .spread_by(|sets: &[LimitSet]| sets.iter().position(|set| set.config()["account"] == "cheap").unwrap_or(0));
/// let taken = |_| pool.try_acquire(demand! { rpm: 1 }).wait().ok()?.admitted();
/// let accounts: Vec<String> = (0..2).filter_map(taken).map(|lease| lease.config()["account"].clone()).collect();
/// assert_eq!(accounts, ["cheap", "dear"], "the others are tried after it");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ChooseSet: Send + Sync {
    /// The place of the set to try first, of which there is at least one. Places past the end count from the start again.
    fn choose(&self, sets: &[LimitSet]) -> usize;
}

impl<F: Fn(&[LimitSet]) -> usize + Send + Sync> ChooseSet for F {
    fn choose(&self, sets: &[LimitSet]) -> usize {
        self(sets)
    }
}

/// Several sets to spread over: accounts, regions, keys. The sets are shared, the pool is a worker's own.
///
/// ```
/// use tollgate::{demand, Limit, LimitPool, LimitSet};
///
/// let account = |name| LimitSet::builder().limits([Limit::per_minute("rpm", 1)]).config("account", name).build();
/// let pool = LimitPool::new([account("blue")?, account("green")?])?;
///
/// let first = pool.try_acquire(demand! { rpm: 1 }).wait()?.admitted().unwrap();
/// let second = pool.try_acquire(demand! { rpm: 1 }).wait()?.admitted().unwrap();
/// assert_ne!(first.config()["account"], second.config()["account"]);
/// assert!(!pool.try_acquire(demand! { rpm: 1 }).wait()?.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LimitPool {
    sets: Vec<LimitSet>,
    /// Whether all of them are in this process, so that all of them answer at once.
    all_here: bool,
    spread: Spread,
    /// In place of the spread.
    choose: Option<Arc<dyn ChooseSet>>,
    index: usize,
    next: AtomicUsize,
}

impl LimitPool {
    /// A pool over these sets, round robin from the first.
    ///
    /// # Errors
    ///
    /// [`PoolError::Empty`] without a set.
    pub fn new(sets: impl IntoIterator<Item = LimitSet>) -> Result<LimitPool, PoolError> {
        let sets: Vec<LimitSet> = sets.into_iter().collect();
        if sets.is_empty() {
            return Err(PoolError::Empty);
        }
        let all_here = sets.iter().all(|set| matches!(set.backing(), Backing::Local(_)));
        let (spread, next) = (Spread::default(), AtomicUsize::new(0));
        Ok(LimitPool { sets, all_here, spread, choose: None, index: 0, next })
    }

    /// Chooses by `spread`.
    #[must_use]
    pub fn spread(self, spread: Spread) -> LimitPool {
        LimitPool { spread, choose: None, ..self }
    }

    /// Chooses by a rule of its own.
    #[must_use]
    pub fn spread_by(self, choose: impl ChooseSet + 'static) -> LimitPool {
        LimitPool { choose: Some(Arc::new(choose)), ..self }
    }

    /// The pool of the worker with this index: its own choice over the same sets.
    #[must_use]
    pub fn for_worker(&self, index: usize) -> LimitPool {
        let (sets, choose, next) = (self.sets.clone(), self.choose.clone(), AtomicUsize::new(index));
        LimitPool { sets, choose, index, next, ..*self }
    }

    /// The index of the worker that it is for; 0 if it is for none.
    pub fn index(&self) -> usize {
        self.index
    }

    /// How every set stands, in order: each limit, how many wait, and whether a cooldown lasts. Changes nothing.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitPool, LimitSet};
    ///
    /// let pool = LimitPool::new([LimitSet::new([Limit::per_minute("rpm", 5)])?, LimitSet::new([Limit::per_minute("rpm", 9)])?])?;
    /// drop(pool.try_acquire(demand! { rpm: 1 }).wait()?);
    /// let left: Vec<i64> = pool.peek().wait()?.iter().map(|set| set.limits[0].available()).collect();
    /// assert_eq!(left, [4, 9]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// A store could not answer.
    pub fn peek(&self) -> Reply<'_, Result<Vec<SetStatus>, StoreError>> {
        Reply::later(async move {
            let mut statuses = Vec::with_capacity(self.sets.len());
            for set in &self.sets {
                statuses.push(set.peek().await?);
            }
            Ok(statuses)
        })
    }

    /// How many sets there are. Never 0.
    #[allow(clippy::len_without_is_empty, reason = "a pool is never empty")]
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// The sets, in order.
    pub fn sets(&self) -> &[LimitSet] {
        &self.sets
    }

    /// Takes the demand from the first set that admits it, beginning with the chosen one. Cooling sets are
    /// passed over.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves nothing taken but what a lease that is dropped leaves.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::try_acquire`]. A demand that can never fit one set may fit another, and a set whose store does not
    /// answer is no worse than one that denies.
    pub fn try_acquire<D: AsDemand>(&self, demand: D) -> TryAcquire<'_, LimitPool, D> {
        TryAcquire::new(self, demand)
    }

    fn try_all(&self, demand: &impl AsDemand, priority: Priority) -> Reply<'_, PoolReply<'_>> {
        if !self.all_here {
            let wanted = Demand::copy_of(demand);
            return Reply::later(async move {
                let order = self.order(&wanted).await;
                self.try_in_order(&order, &wanted, priority).await
            });
        }
        // Sets in this process answer at once, so nothing waits here.
        let order = finished(self.order(demand));
        Reply::ready(finished(self.try_in_order(&order, demand, priority)))
    }

    async fn try_in_order(
        &self,
        order: &[usize],
        demand: &impl AsDemand,
        priority: Priority,
    ) -> PoolReply<'_> {
        let (first, others) = order.split_first().expect("a pool has at least one set");
        let mut best = self.sets[*first].try_acquire(demand).priority(priority).await;
        for index in others {
            if matches!(best, Ok(Attempt::Admitted(_))) {
                break;
            }
            let next = self.sets[*index].try_acquire(demand).priority(priority).await;
            if is_better(&next, &best) {
                best = next;
            }
        }
        best
    }

    /// Takes the demand from whichever set admits it now, else waits in the queues of all of them and takes the first grant.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves no trace.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::acquire`].
    pub fn acquire<D: AsDemand>(&self, demand: D) -> Acquire<'_, LimitPool, D> {
        Acquire::new(self, demand)
    }

    async fn acquire_from_any(
        &self,
        demand: Demand,
        mut wait: WaitOptions,
    ) -> Result<Lease<'_>, AcquireError> {
        let (clock, since) = (self.sets[0].clock(), self.sets[0].clock().now());
        let order = self.order(&demand).await;
        if let Attempt::Admitted(lease) = self.try_in_order(&order, &demand, wait.priority).await? {
            return Ok(lease);
        }
        // Stores may have taken their time to say no.
        wait.spend(clock.now().since(since).to_duration());
        self.wait_in_all(&order, &demand, wait).await
    }

    /// Waits in the queues of all sets and takes the first grant. The other waits are dropped, which leaves no trace of them.
    async fn wait_in_all(
        &self,
        order: &[usize],
        demand: &Demand,
        wait: WaitOptions,
    ) -> Result<Lease<'_>, AcquireError> {
        let wait = |index: &usize| {
            let acquire = Acquire { source: &self.sets[*index], demand, wait };
            Some(Box::pin(acquire.into_future()))
        };
        let mut waits: Vec<_> = order.iter().map(wait).collect();
        let mut refusal: Option<AcquireError> = None;
        poll_fn(move |context| {
            for wait in &mut waits {
                match wait.as_mut().map(|wait| wait.as_mut().poll(context)) {
                    Some(Poll::Ready(Ok(lease))) => return Poll::Ready(Ok(lease)),
                    Some(Poll::Ready(Err(error))) => {
                        *wait = None;
                        refusal = Some(refusal.take().map_or(error.clone(), |best| soonest_of(best, error)));
                    }
                    Some(Poll::Pending) | None => {}
                }
            }
            // A set that cannot grant any more leaves it to the others.
            match refusal.take_if(|_| waits.iter().all(Option::is_none)) {
                Some(refusal) => Poll::Ready(Err(refusal)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The sets in the order to try them. Those in stores that are said to cool come last.
    async fn order(&self, demand: &impl AsDemand) -> Vec<usize> {
        let first = match (&self.choose, self.spread) {
            (Some(choose), _) => choose.choose(&self.sets),
            (None, Spread::RoundRobin) => self.next.fetch_add(1, Ordering::Relaxed),
            (None, Spread::Random) => random_u64() as usize,
            (None, Spread::Soonest) => self.soonest_of(&(0..self.len()).collect::<Vec<_>>(), demand).await,
        };
        let mut order: Vec<usize> =
            (0..self.len()).map(|step| first.wrapping_add(step) % self.len()).collect();
        if !self.all_here {
            order.sort_by_key(|index| self.sets[*index].is_said_to_cool());
        }
        order
    }

    async fn soonest_of(&self, order: &[usize], demand: &impl AsDemand) -> usize {
        let mut best: Option<((u8, u64, usize), usize)> = None;
        for index in order {
            let set = &self.sets[*index];
            let rank = match set.ready(demand).await {
                Ok(Ready::Now) => (0, 0, set.waiting()),
                Ok(Ready::At(tick)) => (1, tick.as_micros(), 0),
                Ok(Ready::Unknown) => (2, 0, set.waiting()),
                Err(_) => (3, 0, 0),
            };
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, *index));
            }
        }
        best.map_or(0, |(_, index)| index)
    }
}

impl<'a, D: AsDemand> TryAcquire<'a, LimitPool, D> {
    /// The answer.
    ///
    /// # Errors
    ///
    /// As [`LimitPool::try_acquire`].
    pub fn wait(self) -> Result<Attempt<Lease<'a>>, AcquireError> {
        self.into_future().wait()
    }
}

impl<'a, D: AsDemand> IntoFuture for TryAcquire<'a, LimitPool, D> {
    type Output = Result<Attempt<Lease<'a>>, AcquireError>;
    type IntoFuture = Reply<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.source.try_all(&self.demand, self.priority)
    }
}

impl<'a, D: AsDemand> Acquire<'a, LimitPool, D> {
    /// Waits in this thread, with no runtime, in the same queues as all waiters.
    ///
    /// # Errors
    ///
    /// As [`LimitPool::acquire`].
    pub fn wait(self) -> Result<Lease<'a>, AcquireError> {
        self.into_future().wait()
    }
}

impl<'a, D: AsDemand> IntoFuture for Acquire<'a, LimitPool, D> {
    type Output = Result<Lease<'a>, AcquireError>;
    type IntoFuture = Reply<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Reply::later(self.source.acquire_from_any(Demand::copy_of(&self.demand), self.wait))
    }
}

impl fmt::Debug for LimitPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pool = f.debug_struct("LimitPool");
        pool.field("sets", &self.sets).field("index", &self.index);
        if self.choose.is_none() {
            pool.field("spread", &self.spread);
        }
        pool.finish_non_exhaustive()
    }
}

/// The answer of a future that does not wait for anything.
fn finished<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("sets in this process answer at once"),
    }
}

/// An admission is better than a denial, a short wait than a long one, and a denial than an error: what can
/// never fit one set may fit another.
fn is_better(one: &PoolReply<'_>, other: &PoolReply<'_>) -> bool {
    let rank = |answer: &PoolReply<'_>| match answer {
        Ok(Attempt::Admitted(_)) => (0, Duration::ZERO),
        Ok(Attempt::Denied(denial)) => denial.wait().map_or((2, Duration::ZERO), |wait| (1, wait)),
        Err(_) => (3, Duration::ZERO),
    };
    rank(one) < rank(other)
}

/// Of two refusals, the one that could be met sooner; one that names a wait rather than one that does not.
fn soonest_of(one: AcquireError, other: AcquireError) -> AcquireError {
    let rank = |error: &AcquireError| match error {
        AcquireError::TimedOut { denial, .. } => denial.wait().map_or((1, Duration::ZERO), |wait| (0, wait)),
        _ => (2, Duration::ZERO),
    };
    if rank(&other) < rank(&one) { other } else { one }
}

/// Sets by their place. Names of limits are ambiguous across sets: look at `pool[0].peek()`.
impl Index<usize> for LimitPool {
    type Output = LimitSet;

    fn index(&self, index: usize) -> &LimitSet {
        &self.sets[index]
    }
}
