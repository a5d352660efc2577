//! Calls of this process by their ids, so that none is applied twice.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tollgate_store::{Mutex, OpId, StepOutcome};

/// How many calls are remembered by their ids.
const CALLS_MAX: usize = 8_192;

/// The calls of this process that have ids.
#[derive(Default)]
pub(super) struct CallTable(Mutex<CallsById>);

#[derive(Default)]
struct CallsById {
    by_id: HashMap<OpId, Arc<CallProgressLock>>,
    order: VecDeque<OpId>,
}

/// The progress of a call. Locked while it is being applied, so that it is not applied twice at once.
pub(super) type CallProgressLock = tokio::sync::Mutex<TxnProgress>;

/// How far a call was applied.
#[derive(Default)]
pub(super) struct TxnProgress {
    pub(super) is_done: bool,
    /// What came of each of its steps so far.
    pub(super) steps: Vec<Option<StepOutcome>>,
}

impl CallTable {
    /// Returns the progress of a call.
    pub(super) fn progress(&self, id: OpId) -> Arc<CallProgressLock> {
        let mut calls = self.0.lock();
        if let Some(progress) = calls.by_id.get(&id) {
            return Arc::clone(progress);
        }
        if calls.order.len() >= CALLS_MAX
            && let Some(oldest) = calls.order.pop_front()
        {
            calls.by_id.remove(&oldest);
        }
        let progress = Arc::<CallProgressLock>::default();
        calls.by_id.insert(id, Arc::clone(&progress));
        calls.order.push_back(id);
        progress
    }

    /// Forgets a call that was undone, so that it may be made again.
    pub(super) fn forget(&self, id: OpId) {
        self.0.lock().by_id.remove(&id);
    }
}
