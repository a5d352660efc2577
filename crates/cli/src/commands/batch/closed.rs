//! Accounts that were closed for good while a batch ran.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_batch::Event;

/// Collects accounts that were closed, with the reasons, until somebody can be told.
#[derive(Clone, Default)]
pub(super) struct ClosedAccounts(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    names: Vec<String>,
    notices: Vec<String>,
}

impl ClosedAccounts {
    /// Adds the account of an event that says that it was closed. Calls that were under way say so once more.
    pub(super) fn observe(&self, event: &Event<'_>) {
        let Event::Closed { scope, closed } = event else { return };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.names.iter().any(|name| name == scope) {
            state.names.push((*scope).to_owned());
            state.notices.push(format!("account {scope} is closed: {}", closed.reason));
        }
    }

    /// Takes what was not told yet.
    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).notices)
    }
}
