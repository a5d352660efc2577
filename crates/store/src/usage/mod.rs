//! Usage: the amount used of each limit, by hour, day and month.
//!
//! A take counts in the hour in which it is taken, and what a settlement gives back or adds in the hour in which it is
//! settled: each event once, at its own time. Resources are not used up, so they are not counted. Hours, days and
//! months are those of UTC.
//!
//! Usage that an entity is charged with because a child made the call is part of its usage, and counted by itself as well, so
//! that a sum over entities can count each call once.
//!
//! A store keeps the sums of the hour beside the bucket and writes them to records when the hour is over: with the next event
//! of the bucket, or when the store sweeps it. Until then a query of usage adds them to the records.

mod record;
mod retention;
mod sums;
mod used;
mod window;

pub use record::{
    bucket_of_usage, child_field, limit_of_child_field, limit_of_field, usage_key, usage_partition,
    usage_place, used_field,
};
pub use retention::UsageRetention;
pub use sums::{Caller, Sums, marked_hour};
pub use used::Used;
pub use window::{Window, iso};

/// In microseconds.
const HOUR: u64 = 3_600_000_000;
