//! Prefetch, for stores whose calls cost something: most takes are served from what the process has taken ahead.
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

/// Settings of a prefetch: the most that a process may take ahead, and for how long it keeps what no caller takes.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::prefetch::Prefetch;
///
/// assert_eq!(Prefetch::new(0, Duration::from_secs(1)), None);
/// assert_eq!(Prefetch::new(5, Duration::from_secs(1)).map(|prefetch| prefetch.percent), Some(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// The most that is held ahead, in percent of each capacity.
    pub percent: u8,
    /// The time without a take after which it is given back.
    pub idle: Span,
}

/// The shortest idle time: checking it more often would be wasted work.
const IDLE_MIN: Duration = Duration::from_millis(10);

impl Prefetch {
    /// Returns the settings for up to so many percent of each capacity, kept for `idle`; `None` if that is nothing.
    pub fn new(percent: u8, idle: Duration) -> Option<Prefetch> {
        let idle = Span::covering(idle.max(IDLE_MIN));
        (percent > 0).then_some(Prefetch { percent: percent.min(100), idle })
    }
}

/// Returns the most that may be held ahead of a bucket under these limits, of each; `None` if they are not all meters.
pub fn bounds(limits: &Limits, percent: u8) -> Option<Vec<u64>> {
    let bound = |limit: &Limit| {
        limit.meter().filter(|_| !limit.is_shadow() && limit.soft_level().is_none())?;
        Some((u128::from(limit.capacity()) * u128::from(percent.min(100)) / 100) as u64)
    };
    limits.iter().map(bound).collect()
}

/// Returns what is asked for together with what is taken ahead; `None` if it could never fit.
pub fn add_prefetch(limits: &Limits, costs: &Costs, ahead: &[u64]) -> Option<Costs> {
    let amounts: Vec<u64> =
        costs.amounts().iter().zip(ahead).map(|(cost, ahead)| cost.saturating_add(*ahead)).collect();
    let demand: Demand =
        limits.iter().zip(&amounts).map(|(limit, amount)| (limit.name().as_str(), *amount)).collect();
    limits.costs(&demand).ok()
}
