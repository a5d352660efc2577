//! Progress of a running batch, and the summary of one that has ended.

use std::time::Duration;

use crate::histogram::Histogram;
use crate::outcome::StopReason;
use crate::scope::Counters;
use crate::status::ScopeStatus;

/// The progress of a batch.
///
/// ```
/// use tollgate_batch::BatchProgress;
///
/// fn finished(progress: &BatchProgress) -> u64 {
///     progress.done + progress.failed + progress.unfinished
/// }
/// assert_eq!(finished(&BatchProgress::default()), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchProgress {
    /// Items that were accepted.
    pub accepted: u64,
    /// Items that are not called: the sum of the four numbers that follow.
    pub skipped: u64,
    /// Items for which an earlier run has stored an output.
    pub done_before: u64,
    /// Items that failed in an earlier run and are not retried.
    pub failed_before: u64,
    /// Items that an earlier run finished with another payload.
    pub changed: u64,
    /// Items whose id the input had before.
    pub duplicates: u64,
    /// Items with an output, which is on disk if the batch has a journal.
    pub done: u64,
    /// Items that failed permanently.
    pub failed: u64,
    /// Items that the batch ended without finishing.
    pub unfinished: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Items that wait for the end of a cooldown, or in the queue.
    pub waiting: u64,
    /// Tokens used.
    pub tokens: u64,
    /// Money spent, in millionths.
    pub cost_micros: u64,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that were answered with a 429 or an overload.
    pub rejected: u64,
    /// Cooldowns that began.
    pub generations: u64,
}

/// The summary of a batch that has ended.
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let run = Batch::new().run([Item::new("a", 1)], |_: ItemAttempt<u64>| async {
///     CallReply::done((), Hint::ok())
/// });
/// let summary = run.finish().await.unwrap();
/// assert_eq!((summary.progress.done, summary.calls.count()), (1, 1));
/// assert!(summary.stopped.is_none());
/// # });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// The progress at the end.
    pub progress: BatchProgress,
    /// The counters of all scopes, added up.
    pub counters: Counters,
    /// The status of each scope at the end.
    pub scopes: Vec<ScopeStatus>,
    /// Durations of the calls that were answered.
    pub calls: Histogram,
    /// Durations of the items, from acceptance to outcome.
    pub items: Histogram,
    /// How long the batch ran.
    pub took: Duration,
    /// Why the batch ended before its input did, if so.
    pub stopped: Option<StopReason>,
}
