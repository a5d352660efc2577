//! What a clock has to wake.

use std::sync::{Arc, Weak};

use super::Alarm;
use super::corrected::CorrectedAlarm;

/// What an alarm wakes, unless it is gone by then.
#[derive(Clone)]
pub(crate) enum AlarmTarget {
    /// An alarm that has another owner.
    Alarm(Weak<dyn Alarm>),
    /// An alarm of a corrected clock, which has no other owner. It is gone when what it rings is.
    Waiting(Arc<CorrectedAlarm>),
}

impl AlarmTarget {
    #[cfg(not(loom))]
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            AlarmTarget::Alarm(alarm) => alarm.strong_count() == 0,
            AlarmTarget::Waiting(waiting) => waiting.is_gone(),
        }
    }

    /// What to ring.
    pub(crate) fn upgrade(self) -> Option<Arc<dyn Alarm>> {
        match self {
            AlarmTarget::Alarm(alarm) => alarm.upgrade(),
            AlarmTarget::Waiting(waiting) => Some(waiting),
        }
    }
}
