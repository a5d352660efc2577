//! What a prefetcher asks of its store.

use std::future::Future;

use tollgate_core::{Costs, Tick};

use super::UsageDelta;
use crate::{OwnedTransaction, StepOutcome, StoreError};

/// A store that a prefetcher takes portions from.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::prefetch::{Portion, PortionOutcome, PortionSource, UsageDelta};
/// use tollgate_store::{Memory, OwnedTransaction, Store, TxnOutcome};
///
/// /// Takes portions from the memory store, and counts no usage.
/// struct MemorySource(Memory);
///
/// impl PortionSource for MemorySource {
///     const TAKES_PARTIAL: bool = false;
///
///     fn now(&self) -> Tick {
///         self.0.clock().now()
///     }
///
///     async fn take_portion(&self, portion: &Portion) -> PortionOutcome {
///         match portion.call.with(|call| self.0.apply(call).wait()) {
///             Ok(TxnOutcome::Done(done)) => PortionOutcome::Taken(done),
///             Ok(_) => PortionOutcome::NotTaken,
///             Err(error) => PortionOutcome::Failed(error),
///         }
///     }
///
///     async fn give_back(&self, call: OwnedTransaction, _: UsageDelta) {
///         call.with(|call| self.0.apply_detached(call));
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let source = MemorySource(Memory::default());
/// let portion = Portion { call: OwnedTransaction::empty(), used: Vec::new(), asked: Vec::new() };
/// assert!(matches!(source.take_portion(&portion).await, PortionOutcome::Taken(_)));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait PortionSource: Send + Sync + 'static {
    /// True if a portion is worth a call that takes from a limit of which nothing may be held ahead. The next take needs a
    /// call then as well, but settlements may be served.
    const TAKES_PARTIAL: bool;

    /// Returns the time of the store.
    fn now(&self) -> Tick;

    /// Takes a portion of all buckets of its call, or of none, and counts what was used of the portions before.
    ///
    /// # Cancel safety
    ///
    /// None is needed: a caller of the [`Prefetcher`](super::Prefetcher) runs its methods to their ends.
    fn take_portion(&self, portion: &Portion) -> impl Future<Output = PortionOutcome> + Send;

    /// Applies a call that gives back what was held, and counts what was used of it: now, or in the background if that
    /// fails.
    ///
    /// # Cancel safety
    ///
    /// None is needed: a caller of the [`Prefetcher`](super::Prefetcher) runs its methods to their ends.
    fn give_back(&self, call: OwnedTransaction, used: UsageDelta) -> impl Future<Output = ()> + Send;
}

/// A call that takes more than was asked for.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::prefetch::{Portion, UsageDelta};
/// use tollgate_store::{BucketRef, Key, Op, OwnedTransaction, Step, Transaction};
///
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::per_minute("rpm", 1_000)])?);
/// let (asked, all) = (limits.costs(&demand! { rpm: 1 })?, limits.costs(&demand! { rpm: 50 })?);
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &all, term: None } }];
/// let mut used = UsageDelta::default();
/// used.add_take(&asked);
/// let call = OwnedTransaction::new(&Transaction { id: None, steps: &steps, metered: true });
/// let portion = Portion { call, used: vec![used], asked: vec![asked] };
/// // Of the 50 that are taken, 1 counts as used so far.
/// assert_eq!((portion.used[0].events, portion.used[0].amounts[0]), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Portion {
    /// Takes of the same buckets with larger costs.
    pub call: OwnedTransaction,
    /// The usage to count, for each step: what was asked for, and what was used of the portions before.
    pub used: Vec<UsageDelta>,
    /// The costs that were asked for, for each step.
    pub asked: Vec<Costs>,
}

/// The outcome of a portion.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::prefetch::PortionOutcome;
/// use tollgate_store::{StoreError, TxnOutcome};
///
/// /// Converts the result of the call that takes the portion.
/// fn outcome(result: Result<TxnOutcome, StoreError>) -> PortionOutcome {
///     match result {
///         Ok(TxnOutcome::Done(done)) => PortionOutcome::Taken(done),
///         Ok(_) => PortionOutcome::NotTaken,
///         Err(error @ StoreError::Unavailable(..)) => PortionOutcome::Unknown(error),
///         Err(error) => PortionOutcome::Failed(error),
///     }
/// }
///
/// let lost = StoreError::Unavailable(Duration::from_secs(2), "the connection was closed".into());
/// assert!(matches!(outcome(Err(lost)), PortionOutcome::Unknown(_)));
/// ```
#[derive(Clone, Debug)]
pub enum PortionOutcome {
    /// It was taken.
    Taken(Vec<StepOutcome>),
    /// It was not taken. What was asked for may still fit.
    NotTaken,
    /// It was not taken, and what was asked for cannot be had either.
    Failed(StoreError),
    /// It is unknown whether it was taken. The store finds out, gives it back, and counts what was used.
    Unknown(StoreError),
}
