//! How a batch stands, and how it went.

use std::time::Duration;

use crate::histogram::Histogram;
use crate::outcome::StopReason;
use crate::scope::Counters;
use crate::status::ScopeStatus;

/// How a batch stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchProgress {
    /// Items that were accepted.
    pub accepted: u64,
    /// Items that are not called, for one of the four reasons that follow.
    pub skipped: u64,
    /// Items with an output that an earlier run wrote down.
    pub done_before: u64,
    /// Items that failed in an earlier run, and are not tried again.
    pub failed_before: u64,
    /// Items that an earlier run finished with another payload.
    pub changed: u64,
    /// Items whose id the input had before.
    pub duplicates: u64,
    /// Items with an output, which is on disk if there is a journal.
    pub done: u64,
    /// Items that failed for good.
    pub failed: u64,
    /// Items that were not tried to the end.
    pub unfinished: u64,
    /// Calls under way.
    pub in_flight: u64,
    /// Items that wait for the end of a cooldown, or for their turn.
    pub waiting: u64,
    /// Tokens used.
    pub tokens: u64,
    /// Money spent, in millionths.
    pub cost_micros: u64,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that were refused with "not now".
    pub rejected: u64,
    /// Cooldowns that began.
    pub generations: u64,
}

/// How a batch went.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// How it stood at the end.
    pub progress: BatchProgress,
    /// What all scopes counted, together.
    pub counters: Counters,
    /// How each scope ended.
    pub scopes: Vec<ScopeStatus>,
    /// How long calls took that were answered.
    pub calls: Histogram,
    /// How long items took from when they were accepted.
    pub items: Histogram,
    /// How long all of it took.
    pub took: Duration,
    /// Why it ended before the input did, if so.
    pub stopped: Option<StopReason>,
}
