//! What comes out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::item::Label;
use crate::scope::Closed;

/// What became of one item. There is exactly one for each item that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome<O> {
    /// The item's id.
    pub id: Arc<str>,
    /// Which item of the input it was, from 0.
    pub index: u64,
    /// What came of it.
    pub result: Result<O, ItemError>,
    /// The last reply of the provider that the handler passed on, if the item failed, by whatever: a call after it that brought
    /// no reply, or a deadline.
    pub rejected: Option<O>,
    /// How many attempts it took. Refusals with "not now" are none.
    pub attempts: u32,
    /// How many calls were made.
    pub calls: u32,
    /// How many of them were refused with "not now".
    pub throttles: u32,
    /// How many tokens its calls used, as far as is known, and as estimated otherwise.
    pub tokens: u64,
    /// What its calls cost, in millionths.
    pub cost_micros: u64,
    /// How long it took since it was accepted.
    pub took: Duration,
    /// What the journal's line says of the item itself.
    pub(crate) label: Label,
}

/// A class of failure of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FailureClass {
    /// "Not now", for longer than there is patience.
    Throttled,
    /// The provider had too much to do, each time.
    Overloaded,
    /// Something failed that may not fail again, and did.
    Transient,
    /// The provider answered, and nothing of use.
    Invalid,
    /// It fails however often it is tried.
    Fatal,
    /// Its deadline has passed.
    Deadline,
    /// The handler panicked.
    Panicked,
}

impl FailureClass {
    /// Its name, as the journal and events write it.
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

    /// The class of that name.
    pub fn named(name: &str) -> Option<FailureClass> {
        use FailureClass::*;
        [Throttled, Overloaded, Transient, Invalid, Fatal, Deadline, Panicked]
            .into_iter()
            .find(|class| class.name() == name)
    }
}

/// Why an item has no output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// It failed, and is not tried again, by a later run either.
    #[error("{}: {reason}", class.name())]
    Item {
        /// In which way.
        class: FailureClass,
        /// Why, in the words of the side that refused it.
        reason: String,
    },
    /// It was not tried to the end. A later run tries it again.
    #[error("not finished: {0}")]
    Unfinished(StopReason),
}

/// Why items were not tried to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The batch was shut down.
    Shutdown,
    /// The deadline of the batch has passed.
    Deadline,
    /// The batch may use no more tokens, or money.
    Budget,
    /// An item failed in a way on which the batch stops.
    Stopped(FailureClass),
    /// The provider refused for good.
    Closed(Closed),
    /// The result could not be written down.
    Journal(Arc<str>),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Shutdown => f.write_str("the batch was shut down"),
            StopReason::Deadline => f.write_str("the deadline of the batch has passed"),
            StopReason::Budget => f.write_str("the budget of the batch is used up"),
            StopReason::Stopped(class) => {
                write!(f, "an item failed ({}), on which the batch stops", class.name())
            }
            StopReason::Closed(closed) => write!(f, "the provider refuses for good: {}", closed.reason),
            StopReason::Journal(cause) => write!(f, "the result could not be written down: {cause}"),
        }
    }
}

impl<O> Outcome<O> {
    /// Whether a later run has nothing to do for it.
    pub fn is_final(&self) -> bool {
        !matches!(self.result, Err(ItemError::Unfinished(_)))
    }
}
