use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tollgate_core::AsDemand;

use super::LimitSet;
use crate::{AcquireError, Attempt};

/// A demand to be tried: `.await` the answer in a task, or `.wait()` for it in a thread.
///
/// Nothing is taken before that.
///
/// # Cancel safety
///
/// Dropping it before it was polled takes nothing; polled, it has answered.
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
        self.set.try_now(&self.demand)
    }
}

impl<'a, D: AsDemand> Future for TryAcquire<'a, D> {
    type Output = Result<Attempt<'a>, AcquireError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(self.set.try_now(&self.demand))
    }
}
