//! Accounts that were closed permanently while a batch ran.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_batch::BatchEvent;

/// Collects accounts that were closed, with the reasons, until the command reports them.
#[derive(Clone, Default)]
pub(super) struct ClosedAccounts(Arc<Mutex<ClosedState>>);

#[derive(Default)]
struct ClosedState {
    /// Names and reasons.
    accounts: Vec<(String, String)>,
    /// How many of them were returned as notices.
    reported: usize,
}

impl ClosedAccounts {
    /// Adds the account of an event that closed it. Calls in flight repeat the event.
    pub(super) fn observe(&self, event: &BatchEvent<'_>) {
        let BatchEvent::Closed { scope, closed } = event else { return };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.accounts.iter().any(|(name, _)| name == scope) {
            state.accounts.push(((*scope).to_owned(), closed.reason.to_string()));
        }
    }

    /// Returns the notices that were not returned before.
    pub(super) fn take_notices(&self) -> Vec<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reported = state.reported;
        state.reported = state.accounts.len();
        let new = state.accounts.iter().skip(reported);
        new.map(|(name, reason)| format!("account {name} is closed: {reason}")).collect()
    }
}
