//! Limit pools: several sets to spread over.

use std::ops::Index;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tollgate_core::{AsDemand, Ready};
use tollgate_store::Reply;

use crate::{AcquireError, Attempt, Lease, LimitSet, PoolError};

type Answer<'a> = Result<Attempt<'a>, AcquireError>;

/// How a pool chooses the set to try first.
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
#[derive(Debug)]
pub struct LimitPool {
    sets: Vec<LimitSet>,
    spread: Spread,
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
        Ok(LimitPool { sets, spread: Spread::default(), next: AtomicUsize::new(0) })
    }

    /// Chooses by `spread`.
    #[must_use]
    pub fn spread(self, spread: Spread) -> LimitPool {
        LimitPool { spread, ..self }
    }

    /// The pool of the worker with this index: its own choice over the same sets.
    #[must_use]
    pub fn for_worker(&self, index: usize) -> LimitPool {
        LimitPool { sets: self.sets.clone(), spread: self.spread, next: AtomicUsize::new(index) }
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
    /// # Errors
    ///
    /// As [`LimitSet::try_acquire`]. A demand that can never fit one set may fit another.
    pub fn try_acquire(&self, demand: impl AsDemand) -> Reply<'_, Result<Attempt<'_>, AcquireError>> {
        let order = self.order(&demand);
        Reply::ready(self.try_in_order(&order, &demand))
    }

    fn try_in_order(&self, order: &[usize], demand: &impl AsDemand) -> Result<Attempt<'_>, AcquireError> {
        let answer = |index: &usize| self.sets[*index].try_acquire(demand).wait();
        let (first, others) = order.split_first().expect("a pool has at least one set");
        let mut best = answer(first);
        for index in others {
            if matches!(best, Ok(Attempt::Admitted(_))) {
                break;
            }
            let next = answer(index);
            if is_better(&next, &best) {
                best = next;
            }
        }
        best
    }

    /// Takes the demand from whichever set admits it now, else waits in the queue of the one that can soonest.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves no trace.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::acquire`].
    pub fn acquire<'a>(
        &'a self,
        demand: impl AsDemand + Send + Sync + 'a,
    ) -> Reply<'a, Result<Lease<'a>, AcquireError>> {
        Reply::later(self.acquire_within(demand, None))
    }

    /// As [`acquire`](LimitPool::acquire), waiting no longer than `timeout`. If no set can be that soon, that is
    /// told at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping it at any time leaves no trace.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::acquire`].
    pub fn acquire_timeout<'a>(
        &'a self,
        demand: impl AsDemand + Send + Sync + 'a,
        timeout: Duration,
    ) -> Reply<'a, Result<Lease<'a>, AcquireError>> {
        Reply::later(self.acquire_within(demand, Some(timeout)))
    }

    async fn acquire_within(
        &self,
        demand: impl AsDemand,
        timeout: Option<Duration>,
    ) -> Result<Lease<'_>, AcquireError> {
        let order = self.order(&demand);
        if let Attempt::Admitted(lease) = self.try_in_order(&order, &demand)? {
            return Ok(lease);
        }
        let waiting = self.sets[self.soonest_of(&order, &demand)].acquire(&demand);
        match timeout {
            Some(timeout) => waiting.timeout(timeout).await,
            None => waiting.await,
        }
    }

    /// The sets in the order to try them.
    fn order(&self, demand: &impl AsDemand) -> Vec<usize> {
        let first = match self.spread {
            Spread::RoundRobin => self.next.fetch_add(1, Ordering::Relaxed),
            Spread::Random => random(),
            Spread::Soonest => self.soonest_of(&(0..self.len()).collect::<Vec<_>>(), demand),
        };
        (0..self.len()).map(|step| first.wrapping_add(step) % self.len()).collect()
    }

    fn soonest_of(&self, order: &[usize], demand: &impl AsDemand) -> usize {
        let ready = |index: &usize| match self.sets[*index].ready(demand).wait() {
            Ok(Ready::Now) => (0, 0, self.sets[*index].peek().waiting),
            Ok(Ready::At(tick)) => (1, tick.as_micros(), 0),
            Ok(Ready::Unknown) => (2, 0, self.sets[*index].peek().waiting),
            Err(_) => (3, 0, 0),
        };
        order.iter().copied().min_by_key(ready).unwrap_or(0)
    }
}

/// An admission is better than a denial, a short wait than a long one, and a denial than an error: what can
/// never fit one set may fit another.
fn is_better(one: &Answer<'_>, other: &Answer<'_>) -> bool {
    let rank = |answer: &Answer<'_>| match answer {
        Ok(Attempt::Admitted(_)) => (0, Duration::ZERO),
        Ok(Attempt::Denied(denial)) => denial.wait().map_or((2, Duration::ZERO), |wait| (1, wait)),
        Err(_) => (3, Duration::ZERO),
    };
    rank(one) < rank(other)
}

/// A number nobody can foresee, from the random keys that the standard library gives each hasher.
fn random() -> usize {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(()) as usize
}

/// Sets by their place. Names of limits are ambiguous across sets: write `pool[0].peek().limit("rpm")`.
impl Index<usize> for LimitPool {
    type Output = LimitSet;

    fn index(&self, index: usize) -> &LimitSet {
        &self.sets[index]
    }
}
