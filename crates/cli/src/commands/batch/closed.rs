//! Accounts that were closed for good while a batch ran.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_batch::BatchEvent;

/// Collects accounts that were closed, with the reasons, until the command reports them.
#[derive(Clone, Default)]
pub(super) struct ClosedAccounts(Arc<Mutex<ClosedState>>);

#[derive(Default)]
struct ClosedState {
    /// Names and reasons.
    accounts: Vec<(String, String)>,
    /// How many of them were reported.
    told: usize,
}

impl ClosedAccounts {
    /// Adds the account of an event that says that it was closed. Calls that were under way say so once more.
    pub(super) fn observe(&self, event: &BatchEvent<'_>) {
        let BatchEvent::Closed { scope, closed } = event else { return };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.accounts.iter().any(|(name, _)| name == scope) {
            state.accounts.push(((*scope).to_owned(), closed.reason.to_string()));
        }
    }

    /// Takes what was not reported yet.
    pub(super) fn take_notices(&self) -> Vec<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, all) = (state.told, state.accounts.len());
        state.told = all;
        let news = state.accounts.iter().skip(told);
        news.map(|(name, reason)| format!("account {name} is closed: {reason}")).collect()
    }
}
