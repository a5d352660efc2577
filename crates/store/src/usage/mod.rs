//! Usage: what was used of each limit, by hour, day and month.
//!
//! A take counts in the hour in which it is taken, and what a settlement gives back or adds in the hour in which it is
//! settled: each event once, at its own time. Resources are not used up, so they are not counted. Hours, days and
//! months are those of UTC.
//!
//! A store keeps the sums of the hour beside the bucket, and writes them down when the hour is over or somebody asks.

mod record;
mod sums;
mod used;
mod window;

pub use record::{USAGE_KEPT, limit_of_field, usage_key, usage_partition, usage_place, used_field};
pub use sums::Sums;
pub use used::Used;
pub use window::{Window, iso};

/// In microseconds.
const HOUR: u64 = 3_600_000_000;
