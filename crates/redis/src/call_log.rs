//! Deduplication of calls that prefetch served, by their ids.

use std::collections::{HashMap, VecDeque};

use tollgate_store::{Mutex, OpId, StepOutcome};

/// How many calls are remembered.
const CALLS_MAX: usize = 65_536;

/// Calls by their ids: those that the server does not know, because they were served from what is held ahead, and those whose
/// outcome only the server knows.
#[derive(Default)]
pub(crate) struct CallLog(Mutex<LoggedCalls>);

#[derive(Default)]
struct LoggedCalls {
    by_id: HashMap<u128, CallProgress>,
    order: VecDeque<u128>,
}

/// The progress of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallProgress {
    /// It was served from what is held ahead.
    Served(Vec<StepOutcome>),
    /// It was sent, and the answer was lost.
    Sent,
}

impl CallLog {
    pub(crate) fn get(&self, id: Option<OpId>) -> Option<CallProgress> {
        self.0.lock().by_id.get(&id?.0).cloned()
    }

    pub(crate) fn note(&self, id: Option<OpId>, progress: CallProgress) {
        let Some(OpId(id)) = id else { return };
        let mut calls = self.0.lock();
        if calls.by_id.insert(id, progress).is_none() {
            calls.order.push_back(id);
        }
        while calls.order.len() > CALLS_MAX {
            if let Some(oldest) = calls.order.pop_front() {
                calls.by_id.remove(&oldest);
            }
        }
    }

    pub(crate) fn forget(&self, id: u128) {
        // Its entry in the order stays, and removes nothing once it is the oldest.
        self.0.lock().by_id.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let calls = CallLog::default();
        let id = |number: usize| Some(OpId(number as u128));
        (0..=CALLS_MAX).for_each(|number| calls.note(id(number), CallProgress::Sent));
        assert_eq!(calls.get(id(0)), None);
        assert_eq!(calls.get(id(1)), Some(CallProgress::Sent));
        calls.note(id(1), CallProgress::Served(vec![StepOutcome::Settled]));
        assert_eq!(calls.get(id(1)), Some(CallProgress::Served(vec![StepOutcome::Settled])));
        calls.forget(1);
        assert_eq!((calls.get(id(1)), calls.get(None)), (None, None));
    }
}
