//! The limits of the workers of a pool.

use tollgate_core::{Limit, LimitBuilder, LimitsError};
use tollgate_store::Reach;

use super::WorkersError;
use crate::{LimitPool, LimitSet};

/// What workers are limited by: nothing, a list of limits, a set, several sets, or a pool. Every worker gets a
/// [`LimitPool`] of its own over the same sets, with its own index.
///
/// ```
/// use tollgate::workers::{WorkerLimits, WorkerPool};
///
/// let limits = WorkerLimits::from([tollgate::Limit::per_second("rps", 100)]);
/// let pool = WorkerPool::threads(2).limits(limits).build(|worker, (): ()| Ok::<_, std::fmt::Error>(worker.limits().len()))?;
/// assert_eq!(pool.submit(()).wait()?.wait()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WorkerLimits(Result<Vec<LimitSet>, LimitsError>, Option<LimitPool>);

impl WorkerLimits {
    fn of(sets: Result<Vec<LimitSet>, LimitsError>) -> WorkerLimits {
        WorkerLimits(sets, None)
    }

    /// The pool that those of the workers are made from. Without a set, there is an empty one in it.
    pub(super) fn into_pool(self) -> Result<LimitPool, WorkersError> {
        if let Some(pool) = self.1 {
            return Ok(pool);
        }
        let mut sets = self.0?;
        if sets.is_empty() {
            // The same job may name limits where none are given.
            sets.push(LimitSet::builder().skip_unknown().build()?);
        }
        Ok(LimitPool::new(sets).expect("there is a set"))
    }
}

/// Whether workers in other processes would see all sets of a pool.
pub(super) fn check_shared(pool: &LimitPool) -> Result<(), WorkersError> {
    let is_hidden = |set: &LimitSet| set.reach() == Reach::Process && !set.limits().is_empty();
    match pool.sets().iter().position(is_hidden) {
        Some(index) => Err(WorkersError::NotShared(index)),
        None => Ok(()),
    }
}

/// Nothing.
impl From<()> for WorkerLimits {
    fn from((): ()) -> WorkerLimits {
        WorkerLimits::of(Ok(Vec::new()))
    }
}

impl From<LimitSet> for WorkerLimits {
    fn from(set: LimitSet) -> WorkerLimits {
        WorkerLimits::of(Ok(vec![set]))
    }
}

impl From<Vec<LimitSet>> for WorkerLimits {
    fn from(sets: Vec<LimitSet>) -> WorkerLimits {
        WorkerLimits::of(Ok(sets))
    }
}

impl From<LimitPool> for WorkerLimits {
    fn from(pool: LimitPool) -> WorkerLimits {
        WorkerLimits(Ok(Vec::new()), Some(pool))
    }
}

impl From<Vec<Limit>> for WorkerLimits {
    fn from(limits: Vec<Limit>) -> WorkerLimits {
        WorkerLimits::of(LimitSet::new(limits).map(|set| vec![set]))
    }
}

impl From<Vec<LimitBuilder>> for WorkerLimits {
    fn from(limits: Vec<LimitBuilder>) -> WorkerLimits {
        WorkerLimits::of(LimitSet::new(limits).map(|set| vec![set]))
    }
}

impl<const N: usize> From<[LimitBuilder; N]> for WorkerLimits {
    fn from(limits: [LimitBuilder; N]) -> WorkerLimits {
        WorkerLimits::of(LimitSet::new(limits).map(|set| vec![set]))
    }
}
