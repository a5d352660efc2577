//! What a prefetcher asks of its store.

use std::future::Future;

use tollgate_core::{Costs, Tick};

use super::UsageDelta;
use crate::{OwnedTransaction, StepOutcome, StoreError};

/// A store that a prefetcher takes portions from. See [`Prefetcher`](super::Prefetcher) for an example.
pub trait PortionSource: Send + Sync + 'static {
    /// Whether a portion is worth a call that takes from a limit of which nothing may be held ahead. The next take
    /// needs a call then as well, but settlements may be served.
    const TAKES_PARTIAL: bool;

    /// Returns the time of the store.
    fn now(&self) -> Tick;

    /// Takes a portion of all buckets of its call, or of none, and counts what was used of the portions before.
    fn take_portion(&self, portion: &Portion) -> impl Future<Output = PortionOutcome> + Send;

    /// Applies a call that gives back what was held, and counts what was used of it: now, or in the background if that
    /// fails.
    fn give_back(&self, call: OwnedTransaction, used: UsageDelta) -> impl Future<Output = ()> + Send;
}

/// A call that takes more than was asked for. See [`Prefetcher`](super::Prefetcher) for an example.
#[derive(Clone, Debug)]
pub struct Portion {
    /// Takes of the same buckets with larger costs.
    pub call: OwnedTransaction,
    /// What to count as used, for each step: what was asked for, and what was used of the portions before.
    pub used: Vec<UsageDelta>,
    /// What was asked for, for each step.
    pub asked: Vec<Costs>,
}

/// The outcome of a portion. See [`Prefetcher`](super::Prefetcher) for an example.
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
