//! A store in which changes are rehearsed: it answers as if they were made, and makes none.
//!
//! So a dry run is the same code as the real one, with the same checks and the same errors, whatever the command. What
//! is written to records is kept here, where later reads see it; buckets stay as they are.

mod kept;
mod records;
mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate::store::Backend;
use tollgate::store::records::{Item, ItemKey, RecordsError, Write, check_writes};

use kept::PendingWrites;

/// Wraps a store and keeps what would be written to it.
pub(crate) struct DryRunStore {
    inner: Arc<dyn Backend>,
    kept: Mutex<PendingWrites>,
}

impl DryRunStore {
    /// A rehearsal on this store.
    pub(crate) fn on(inner: Arc<dyn Backend>) -> DryRunStore {
        DryRunStore { inner, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, PendingWrites> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn record(&self, key: &ItemKey) -> Result<Option<Item>, RecordsError> {
        if let Some(kept) = self.kept().records.get(key) {
            return Ok(kept.clone());
        }
        let keys = [key.clone()];
        Ok(self.inner.get_many(&keys).await?.pop().flatten())
    }

    /// Keeps the writes if all their tests hold.
    async fn keep(&self, writes: &[Write]) -> Result<(), RecordsError> {
        check_writes(writes)?;
        let mut outcome = Vec::with_capacity(writes.len());
        for (place, write) in writes.iter().enumerate() {
            let there = self.record(write.key()).await?;
            if !write.passes(there.as_ref()) {
                return Err(RecordsError::Failed(place));
            }
            outcome.push((write.key().clone(), there.is_none(), write.applied(there)));
        }
        let mut kept = self.kept();
        for (key, was_missing, item) in outcome {
            if was_missing && !kept.records.contains_key(&key) {
                kept.new.insert(key.clone());
            }
            kept.records.insert(key, item);
        }
        Ok(())
    }
}
