//! Chains: several cells taken together, locked in one order.

use std::sync::Arc;

use tollgate_core::{Costs, Denial, Limits, SmallCosts, Take, Tick, Usage};

use crate::locked::LockedBucket;
use crate::sync::MutexGuard;
use crate::usage::Caller;
use crate::{BucketCell, Clock, LeaseTerm, Priority};

/// The most buckets that one chain may have.
pub const CHAIN_MAX: usize = 8;

/// Several cells that are taken together or not at all, such as an entity and its parents.
///
/// Cells are locked in the order of their addresses, whatever their order in the chain, so two chains that
/// share cells never wait for each other in a circle.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::{BucketCell, CellChain, Clock, Key, Priority};
///
/// let limits = |slots| Limits::new([Limit::resource("slots", slots)]);
/// let (user, team) = (limits(5)?, limits(1)?);
/// let costs = user.costs(&demand! { slots: 1 })?;
/// let cells = [("user-1", user), ("team", team)]
///     .map(|(entity, limits)| BucketCell::new(Key::new(&[entity]), limits, Tick::ZERO));
/// let (chain, clock) = (CellChain::new(cells.to_vec())?, Clock::system());
///
/// assert!(chain.try_take(&clock, &[&costs, &costs], None, Priority::Normal).is_ok());
/// assert!(chain.try_take(&clock, &[&costs, &costs], None, Priority::Normal).is_err());
/// assert_eq!(cells[0].peek(&clock)[0].available(), 4, "the denied call took nothing");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CellChain {
    cells: Vec<Arc<BucketCell>>,
    lock_order: Vec<usize>,
}

/// The most cells of which [`CellChain::take_plain`] takes.
#[doc(hidden)]
pub const PLAIN_CHAIN_MAX: usize = 4;

/// The costs that [`CellChain::take_plain`] takes of one cell.
// Hidden: the fast path of sibling crates.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct PlainStep<'a> {
    /// The limits that the costs are counted in.
    pub limits: &'a Limits,
    /// The costs to take.
    pub costs: SmallCosts,
    /// Whose call it is, to count its usage.
    pub caller: Caller,
    /// When it was taken.
    pub at: Tick,
    /// Whether it was counted. It is not if sums of another hour, of other limits or of other callers are in the way.
    pub is_counted: bool,
}

impl<'a> PlainStep<'a> {
    /// Returns a step that takes nothing yet.
    #[inline]
    pub fn of(limits: &'a Limits, caller: Caller) -> PlainStep<'a> {
        PlainStep { limits, costs: SmallCosts::default(), caller, at: Tick::ZERO, is_counted: false }
    }
}

/// The reason that cells do not make a chain.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_core::{Limit, Limits, Tick};
/// use tollgate_store::{BucketCell, CellChain, ChainError, Key};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let cell = BucketCell::new(Key::new(&["user-1"]), limits, Tick::ZERO);
/// let repeated = CellChain::new(vec![Arc::clone(&cell), cell]);
/// assert_eq!(repeated.err(), Some(ChainError::Repeated));
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// There are more than [`CHAIN_MAX`].
    #[error("a chain of {0} buckets is too long; at most 8 are allowed")]
    TooLong(usize),
    /// One cell stands in it twice.
    #[error("a bucket stands in the chain twice; name each once and add the amounts up")]
    Repeated,
}

impl CellChain {
    /// Returns a chain of these cells.
    ///
    /// # Errors
    ///
    /// Too many cells, or one of them twice.
    pub fn new(cells: Vec<Arc<BucketCell>>) -> Result<CellChain, ChainError> {
        if cells.len() > CHAIN_MAX {
            return Err(ChainError::TooLong(cells.len()));
        }
        let address = |index: &usize| cells[*index].lock_order();
        let mut lock_order: Vec<usize> = (0..cells.len()).collect();
        lock_order.sort_by_key(address);
        if lock_order.windows(2).any(|pair| address(&pair[0]) == address(&pair[1])) {
            return Err(ChainError::Repeated);
        }
        Ok(CellChain { cells, lock_order })
    }

    /// Returns its cells, in the order they were given.
    pub fn cells(&self) -> &[Arc<BucketCell>] {
        &self.cells
    }

    /// Takes `costs[i]` of each cell `i`, or nothing of any. Returns when, for each cell.
    ///
    /// # Errors
    ///
    /// The denial of every cell, in order. Nothing has changed.
    ///
    /// # Panics
    ///
    /// If there are not as many costs as cells.
    pub fn try_take(
        &self,
        clock: &Clock,
        costs: &[&Costs],
        term: Option<LeaseTerm>,
        priority: Priority,
    ) -> Result<[Tick; CHAIN_MAX], Vec<Denial>> {
        assert_eq!(costs.len(), self.cells.len(), "each cell of a chain wants its costs");
        let now = clock.now();
        let mut locked = [const { None }; CHAIN_MAX];
        for index in &self.lock_order {
            locked[*index] = Some(self.cells[*index].lock());
        }
        let locked = &mut locked[..costs.len()];
        let mut inners = locked.iter_mut().flatten().zip(costs);
        if !inners.all(|(inner, costs)| inner.fits(now, costs, priority)) {
            let inners = locked.iter().flatten().zip(costs);
            return Err(inners.map(|(inner, costs)| inner.denial(now, costs, priority)).collect());
        }
        let mut at = [Tick::ZERO; CHAIN_MAX];
        for ((inner, costs), at) in locked.iter_mut().flatten().zip(costs).zip(&mut at) {
            let holder = term.map(|term| term.starting(now));
            let LockedBucket { limits, bucket, .. } = &mut **inner;
            *at = bucket.commit(limits, now, &Take { costs, holder });
        }
        Ok(at)
    }

    /// Takes and counts each step of the cell in its place, and notes when, if no caller waits, all buckets are plain and under the limits
    /// of their steps, and all costs fit, which is the common case. `false`, with nothing taken, if not, or if the chain has
    /// more than [`PLAIN_CHAIN_MAX`] cells.
    #[inline]
    pub fn take_plain(&self, now: Tick, steps: &mut [PlainStep<'_>]) -> bool {
        if self.cells.len() > PLAIN_CHAIN_MAX || steps.len() != self.cells.len() {
            return false;
        }
        let mut locked = [const { None }; PLAIN_CHAIN_MAX];
        for index in &self.lock_order {
            locked[*index] = Some(self.cells[*index].lock());
        }
        let fits = |(inner, step): (&MutexGuard<'_, LockedBucket>, &PlainStep<'_>)| {
            inner.waiting.is_none()
                && inner.limits.same(step.limits)
                && inner.bucket.fits_plain(&inner.limits, now, &step.costs)
        };
        // Taking from the first cell, before the others, finds out by itself whether its costs fit.
        if !locked.iter().flatten().zip(steps.iter()).skip(1).all(fits) {
            return false;
        }
        for (inner, step) in locked.iter_mut().flatten().zip(steps) {
            // Only the first can be denied: those of the others were found to fit under the same lock.
            let Some(at) = inner.take_plain_under(now, step.limits, &step.costs) else { return false };
            step.at = at;
            let amounts = &step.costs.amounts()[..step.limits.len()];
            step.is_counted =
                inner.count(step.at, step.limits, step.caller, |sums| sums.add_amounts(amounts));
        }
        true
    }

    /// Settles each cell with its usage, which is counted in `limits[i]`.
    pub fn settle(&self, clock: &Clock, limits: &[Limits], usages: &[Usage<'_>]) {
        for ((cell, limits), usage) in self.cells.iter().zip(limits).zip(usages) {
            cell.settle(clock, limits, usage);
        }
    }
}
