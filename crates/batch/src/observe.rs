//! What happens, as it happens.

use std::time::Duration;

use tollgate_provider::Class;

use crate::outcome::FailureClass;
use crate::scope::Closed;

/// Something that happened in a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BatchEvent<'a> {
    /// A call started.
    Started {
        /// The item.
        id: &'a str,
        /// The scope.
        scope: &'a str,
        /// Which attempt it is.
        attempt: u32,
    },
    /// A call was answered, or ended without an answer.
    Replied {
        /// The item.
        id: &'a str,
        /// The scope.
        scope: &'a str,
        /// What the provider said.
        class: Class,
        /// How long it took.
        took: Duration,
        /// Why it was refused, in the words of the provider, if it gave a reason.
        reason: Option<&'a str>,
    },
    /// An item met a 429 or an outage, and waits with its state for the end of the cooldown.
    Parked {
        /// The item.
        id: &'a str,
        /// The scope.
        scope: &'a str,
    },
    /// A cooldown began, or ends at another time than was said before.
    CoolingDown {
        /// The scope.
        scope: &'a str,
        /// Which cooldown it is, from 1.
        generation: u64,
        /// For how long from now on.
        left: Duration,
        /// Why, in the words of the provider.
        reason: &'a str,
    },
    /// A cooldown ended, or the batch did.
    CooledDown {
        /// The scope.
        scope: &'a str,
        /// Which cooldown it was.
        generation: u64,
        /// How many calls met it.
        participants: u64,
        /// How long it lasted.
        paused: Duration,
    },
    /// A parked item is called again.
    HandedOut {
        /// The item.
        id: &'a str,
        /// The scope.
        scope: &'a str,
    },
    /// An item is tried again after a failure.
    Retrying {
        /// The item.
        id: &'a str,
        /// What the failure was.
        class: FailureClass,
        /// After how long.
        pause: Duration,
    },
    /// An item is finished, or given up. Where there is a journal, it is written down by then.
    Finished {
        /// The item.
        id: &'a str,
        /// In which way it failed; `None` if it is done, or was not tried to the end.
        failed: Option<FailureClass>,
        /// Whether there is an output.
        done: bool,
    },
    /// A scope is closed for good.
    Closed {
        /// The scope.
        scope: &'a str,
        /// Why.
        closed: &'a Closed,
    },
    /// An item is not called.
    Skipped {
        /// The item.
        id: &'a str,
        /// Which item of the input it is, from 0.
        index: u64,
        /// Why it is not called.
        reason: SkipReason,
    },
    /// The batch has ended. Nothing follows.
    Ended,
}

/// Why an item is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// An earlier run wrote its output down.
    Done,
    /// It failed in an earlier run.
    Failed,
    /// An earlier run finished it, and its [fingerprint](crate::Item::fingerprint) was another one then.
    Changed,
    /// The input had an item of this id before.
    Duplicate,
}

impl SkipReason {
    /// Its name, as events write it.
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Done => "done",
            SkipReason::Failed => "failed",
            SkipReason::Changed => "changed",
            SkipReason::Duplicate => "duplicate",
        }
    }
}

/// Hears what happens. It is called from the batch's own task, and should be quick.
pub trait BatchObserver: Send {
    /// Something happened.
    fn observe(&mut self, event: &BatchEvent<'_>);
}

impl<F: FnMut(&BatchEvent<'_>) + Send> BatchObserver for F {
    fn observe(&mut self, event: &BatchEvent<'_>) {
        self(event);
    }
}
