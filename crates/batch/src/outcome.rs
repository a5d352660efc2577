//! Outcomes of items.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::item::Label;
use crate::scope::Closed;

/// The outcome of one item. Each accepted item has exactly one.
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut run = Batch::new().run([Item::new("a", 20)], |call: ItemAttempt<u64>| async move {
///     CallReply::done(call.payload() + 1, Hint::ok())
/// });
/// let outcome = run.next().await.unwrap();
/// assert_eq!((&*outcome.id, outcome.result.clone(), outcome.attempts), ("a", Ok(21), 1));
/// assert!(outcome.is_final());
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome<O> {
    /// The id of the item.
    pub id: Arc<str>,
    /// The index of the item in the input, from 0.
    pub index: u64,
    /// The output, or why there is none.
    pub result: Result<O, ItemError>,
    /// The last reply of the provider that the handler passed on, if the item failed. A later call
    /// without a reply, or a deadline, does not discard it.
    pub rejected: Option<O>,
    /// The number of attempts. A 429 does not count as one.
    pub attempts: u32,
    /// The number of calls.
    pub calls: u32,
    /// The number of calls that were answered with a 429.
    pub throttles: u32,
    /// The tokens that its calls used; estimated where the usage is not known.
    pub tokens: u64,
    /// The cost of its calls, in millionths.
    pub cost_micros: u64,
    /// The time from acceptance to outcome.
    pub took: Duration,
    /// What the line of the item in a journal contains besides the outcome.
    pub(crate) label: Label,
}

/// A class of failures.
///
/// ```
/// use tollgate_batch::FailureClass;
///
/// assert_eq!(FailureClass::named("throttled"), Some(FailureClass::Throttled));
/// assert_eq!(FailureClass::Fatal.name(), "fatal");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FailureClass {
    /// The provider answered 429 for longer than the throttle budget.
    Throttled,
    /// The provider was overloaded, on every attempt.
    Overloaded,
    /// A failure that may pass, on every attempt.
    Transient,
    /// The provider answered, and the output was not usable.
    Invalid,
    /// A failure that no retry helps against.
    Fatal,
    /// The deadline of the item has passed.
    Deadline,
    /// The handler panicked.
    Panicked,
}

impl FailureClass {
    /// Returns the name of the class, as the journal and events write it.
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::Throttled => "throttled",
            FailureClass::Overloaded => "overloaded",
            FailureClass::Transient => "transient",
            FailureClass::Invalid => "invalid",
            FailureClass::Fatal => "fatal",
            FailureClass::Deadline => "deadline",
            FailureClass::Panicked => "panicked",
        }
    }

    /// Returns the class of a name.
    pub fn named(name: &str) -> Option<FailureClass> {
        use FailureClass::*;
        [Throttled, Overloaded, Transient, Invalid, Fatal, Deadline, Panicked]
            .into_iter()
            .find(|class| class.name() == name)
    }
}

/// Why an item has no output.
///
/// ```
/// use tollgate_batch::{FailureClass, ItemError, StopReason};
///
/// let failed = ItemError::Item { class: FailureClass::Fatal, reason: "no such model".into() };
/// assert_eq!(failed.to_string(), "fatal: no such model");
/// let unfinished = ItemError::Unfinished(StopReason::Deadline);
/// assert_eq!(unfinished.to_string(), "not finished: the deadline of the batch has passed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// The item failed. No later run retries it, unless it is asked to.
    #[error("{}: {reason}", class.name())]
    Item {
        /// The class of the failure.
        class: FailureClass,
        /// The reason, in the words of the provider or of the handler.
        reason: String,
    },
    /// The batch ended before the item was finished. A later run calls it again.
    #[error("not finished: {0}")]
    Unfinished(StopReason),
}

/// Why a batch ended before its input did.
///
/// ```
/// use tollgate_batch::StopReason;
///
/// assert_eq!(StopReason::Shutdown.to_string(), "the batch was shut down");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The batch was shut down.
    Shutdown,
    /// The deadline of the batch has passed.
    Deadline,
    /// The budget of tokens or money is used up.
    Budget,
    /// An item failed with a class that stops the batch.
    Stopped(FailureClass),
    /// The provider refuses every call permanently.
    Closed(Closed),
    /// The journal could not be written.
    Journal(Arc<str>),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Shutdown => f.write_str("the batch was shut down"),
            StopReason::Deadline => f.write_str("the deadline of the batch has passed"),
            StopReason::Budget => f.write_str("the budget of the batch is used up"),
            StopReason::Stopped(class) => {
                write!(f, "an item failed ({}), which stops the batch", class.name())
            }
            StopReason::Closed(closed) => write!(f, "the provider refuses for good: {}", closed.reason),
            StopReason::Journal(cause) => write!(f, "the result could not be stored in the journal: {cause}"),
        }
    }
}

impl<O> Outcome<O> {
    /// Returns true if a later run does not call the item again.
    pub fn is_final(&self) -> bool {
        !matches!(self.result, Err(ItemError::Unfinished(_)))
    }
}
