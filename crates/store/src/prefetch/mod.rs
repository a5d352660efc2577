//! Taking ahead, for stores that every call costs something: most takes are then served from what the process holds already.
//!
//! It was taken from the bucket before it is handed out, so all processes together never hand out more than there is.
//! What is held ahead is bounded by a part of each capacity, taken in portions that last for a moment, and given back
//! when no caller wants it. [`Prefetcher`] serves calls from it; a store only has to take a portion and to give it back
//! ([`PortionSource`]).

mod buckets;
mod buffer;
mod portion;
mod prefetcher;
mod usage_delta;

use std::time::Duration;

use tollgate_core::{Costs, Demand, Limit, Limits, Span};

use buffer::PrefetchBuffer;
pub use portion::{Portion, PortionOutcome, PortionSource};
pub use prefetcher::{Prefetcher, ServeMode, giving_back};
pub use usage_delta::UsageDelta;
use usage_delta::signed;

/// How far ahead a process may take, and for how long it keeps what no caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// Of each capacity.
    pub percent: u8,
    /// How long it is kept.
    pub idle: Span,
}

/// What no caller wants is kept for at least this long: checking it more often would be wasted work.
const IDLE_MIN: Duration = Duration::from_millis(10);

impl Prefetch {
    /// Up to so many percent of each capacity, kept for `idle`; `None` if that is nothing.
    pub fn new(percent: u8, idle: Duration) -> Option<Prefetch> {
        let idle = Span::covering(idle.max(IDLE_MIN));
        (percent > 0).then_some(Prefetch { percent: percent.min(100), idle })
    }
}

/// The most that may be held ahead of a bucket under these limits, of each; `None` if they are not all meters.
pub fn bounds(limits: &Limits, percent: u8) -> Option<Vec<u64>> {
    let bound = |limit: &Limit| {
        limit.meter().filter(|_| !limit.is_shadow() && limit.soft_level().is_none())?;
        Some((u128::from(limit.capacity()) * u128::from(percent.min(100)) / 100) as u64)
    };
    limits.iter().map(bound).collect()
}

/// What is asked for and what is taken beyond. Amounts that could never fit are not taken ahead.
pub fn add_prefetch(limits: &Limits, costs: &Costs, ahead: &[u64]) -> Option<Costs> {
    let amounts: Vec<u64> =
        costs.amounts().iter().zip(ahead).map(|(cost, ahead)| cost.saturating_add(*ahead)).collect();
    let demand: Demand =
        limits.iter().zip(&amounts).map(|(limit, amount)| (limit.name().as_str(), *amount)).collect();
    limits.costs(&demand).ok()
}
