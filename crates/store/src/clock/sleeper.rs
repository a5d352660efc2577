//! What a clock has to wake.

use std::sync::{Arc, Weak};

use super::Alarm;
use super::corrected::Waiting;

/// Somebody to wake, unless they are gone by then.
#[derive(Clone)]
pub(crate) enum Sleeper {
    /// An alarm that somebody else owns.
    Alarm(Weak<dyn Alarm>),
    /// An alarm of a corrected clock, which nobody else owns. It is gone when what it rings is.
    Waiting(Arc<Waiting>),
}

impl Sleeper {
    #[cfg(not(loom))]
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Sleeper::Alarm(alarm) => alarm.strong_count() == 0,
            Sleeper::Waiting(waiting) => waiting.is_gone(),
        }
    }

    /// What to ring.
    pub(crate) fn upgrade(self) -> Option<Arc<dyn Alarm>> {
        match self {
            Sleeper::Alarm(alarm) => alarm.upgrade(),
            Sleeper::Waiting(waiting) => Some(waiting),
        }
    }
}
