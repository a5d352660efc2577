//! Events of a batch, and the observer that receives them.

use std::time::Duration;

use tollgate_provider::Class;

use crate::outcome::FailureClass;
use crate::scope::Closed;

/// An event of a batch.
///
/// ```
/// use tollgate_batch::BatchEvent;
///
/// fn log(event: &BatchEvent<'_>) -> Option<String> {
///     match event {
///         BatchEvent::CoolingDown { scope, left, reason, .. } => {
///             Some(format!("{scope}: no call for {left:?} ({reason})"))
///         }
///         BatchEvent::Closed { scope, closed } => Some(format!("{scope}: closed, {}", closed.reason)),
///         _ => None,
///     }
/// }
/// # assert_eq!(log(&BatchEvent::Ended), None);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BatchEvent<'a> {
    /// A call started.
    Started {
        /// The id of the item.
        id: &'a str,
        /// The name of the scope.
        scope: &'a str,
        /// The number of the attempt.
        attempt: u32,
    },
    /// A call was answered, or ended without an answer.
    Replied {
        /// The id of the item.
        id: &'a str,
        /// The name of the scope.
        scope: &'a str,
        /// The class of the reply.
        class: Class,
        /// How long the call took.
        took: Duration,
        /// The reason of a refusal, in the words of the provider, if it gave one.
        reason: Option<&'a str>,
    },
    /// An item met a 429 or an outage, and waits with its state for the end of the cooldown.
    Parked {
        /// The id of the item.
        id: &'a str,
        /// The name of the scope.
        scope: &'a str,
    },
    /// A cooldown began, or its end has changed.
    CoolingDown {
        /// The name of the scope.
        scope: &'a str,
        /// The number of the cooldown, from 1.
        generation: u64,
        /// How long the cooldown still lasts.
        left: Duration,
        /// The reason, in the words of the provider.
        reason: &'a str,
    },
    /// A cooldown ended, or the batch did.
    CooledDown {
        /// The name of the scope.
        scope: &'a str,
        /// The number of the cooldown.
        generation: u64,
        /// How many calls met the cooldown.
        participants: u64,
        /// How long the cooldown lasted.
        paused: Duration,
    },
    /// A parked item is called again.
    HandedOut {
        /// The id of the item.
        id: &'a str,
        /// The name of the scope.
        scope: &'a str,
    },
    /// An item is retried after a failure.
    Retrying {
        /// The id of the item.
        id: &'a str,
        /// The class of the failure.
        class: FailureClass,
        /// The pause before the next attempt.
        pause: Duration,
    },
    /// An item has its outcome. If there is a journal, the outcome is on disk.
    Finished {
        /// The id of the item.
        id: &'a str,
        /// The class of the failure; `None` if the item has an output or is unfinished.
        failed: Option<FailureClass>,
        /// True if the item has an output.
        done: bool,
    },
    /// A scope is closed permanently.
    Closed {
        /// The name of the scope.
        scope: &'a str,
        /// Why the scope is closed.
        closed: &'a Closed,
    },
    /// An item is not called.
    Skipped {
        /// The id of the item.
        id: &'a str,
        /// The index of the item in the input, from 0.
        index: u64,
        /// Why it is not called.
        reason: SkipReason,
    },
    /// The batch has ended. No event follows.
    Ended,
}

/// Why an item is not called.
///
/// ```
/// use tollgate_batch::SkipReason;
///
/// assert_eq!(SkipReason::Duplicate.name(), "duplicate");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// An earlier run has stored its output.
    Done,
    /// It failed in an earlier run.
    Failed,
    /// An earlier run finished it with another [fingerprint](crate::Item::fingerprint).
    Changed,
    /// The input had an item with the same id before.
    Duplicate,
}

impl SkipReason {
    /// Returns the name of the reason, as events write it.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Done => "done",
            SkipReason::Failed => "failed",
            SkipReason::Changed => "changed",
            SkipReason::Duplicate => "duplicate",
        }
    }
}

/// An observer of a batch. The task of the batch calls it, so it should be quick. A closure is one.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tollgate_batch::{Batch, BatchEvent, BatchObserver, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// /// Counts the calls that started.
/// struct Starts(Arc<AtomicU64>);
///
/// impl BatchObserver for Starts {
///     fn observe(&mut self, event: &BatchEvent<'_>) {
///         if let BatchEvent::Started { .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let starts = Arc::new(AtomicU64::new(0));
/// let batch = Batch::new().observer(Starts(starts.clone()));
/// let run = batch.run([Item::new("a", 1)], |_: ItemAttempt<u64>| async {
///     CallReply::done((), Hint::ok())
/// });
/// run.finish().await.unwrap();
/// assert_eq!(starts.load(Ordering::Relaxed), 1);
/// # });
/// ```
pub trait BatchObserver: Send {
    /// Handles an event.
    fn observe(&mut self, event: &BatchEvent<'_>);
}

impl<F: FnMut(&BatchEvent<'_>) + Send> BatchObserver for F {
    fn observe(&mut self, event: &BatchEvent<'_>) {
        self(event);
    }
}
