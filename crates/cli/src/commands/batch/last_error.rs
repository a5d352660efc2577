//! The last error of a batch, for the view.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_batch::BatchEvent;
use tollgate_provider::Class;

/// The last call that failed, other than by a 429: those are what the cooldown shows.
#[derive(Clone, Default)]
pub(crate) struct LastError(Arc<Mutex<Option<String>>>);

impl LastError {
    /// Keeps the error of an event, if it has one.
    pub(crate) fn observe(&self, event: &BatchEvent<'_>) {
        let BatchEvent::Replied { class, reason, .. } = event else { return };
        if matches!(class, Class::Ok | Class::Throttled) {
            return;
        }
        let text = reason.unwrap_or("no reply in time, and no reason was given");
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
    }

    /// Returns the last error.
    pub(crate) fn text(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
