use std::future::IntoFuture;

use tollgate_core::AsDemand;
use tollgate_store::Reply;

use super::{Backing, LimitSet};
use crate::{AcquireError, Attempt};

/// A demand to be tried: `.await` the answer in a task, or `.wait()` for it in a thread.
///
/// Nothing is taken before that.
///
/// # Cancel safety
///
/// Dropping it at any time leaves nothing taken but what a lease that is dropped leaves.
#[must_use = "nothing is taken until this is awaited or waited for"]
#[derive(Debug)]
pub struct TryAcquire<'a, D> {
    set: &'a LimitSet,
    demand: D,
}

impl<'a, D: AsDemand> TryAcquire<'a, D> {
    #[inline(always)]
    pub(super) fn new(set: &'a LimitSet, demand: D) -> TryAcquire<'a, D> {
        TryAcquire { set, demand }
    }

    /// The answer.
    ///
    /// # Errors
    ///
    /// As [`LimitSet::try_acquire`].
    #[inline]
    pub fn wait(self) -> Result<Attempt<'a>, AcquireError> {
        match self.set.home() {
            Backing::Local(cell) => self.set.try_local(cell, &self.demand),
            Backing::Stored(remote) => self.set.try_stored(remote, &self.demand).wait(),
        }
    }
}

impl<'a, D: AsDemand> IntoFuture for TryAcquire<'a, D> {
    type Output = Result<Attempt<'a>, AcquireError>;
    type IntoFuture = Reply<'a, Self::Output>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        match self.set.home() {
            Backing::Local(cell) => Reply::ready(self.set.try_local(cell, &self.demand)),
            Backing::Stored(remote) => self.set.try_stored(remote, &self.demand),
        }
    }
}
