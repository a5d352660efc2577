//! A store for dry runs: it answers as if changes were made, and makes none.
//!
//! So a dry run is the same code as the real one, with the same checks and the same errors, whatever the command. Writes to
//! records are buffered here, where later reads see them; buckets stay unchanged.

mod pending_writes;
mod records;
mod store;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate::store::Backend;
use tollgate::store::records::{Item, ItemKey, RecordsError, Write, check_writes};

use pending_writes::PendingWrites;

/// Wraps a store and buffers the writes to it.
pub(crate) struct DryRunStore {
    inner: Arc<dyn Backend>,
    pending: Mutex<PendingWrites>,
}

impl DryRunStore {
    /// Creates a dry-run store on top of a store.
    pub(crate) fn on(inner: Arc<dyn Backend>) -> DryRunStore {
        DryRunStore { inner, pending: Mutex::default() }
    }

    fn pending(&self) -> MutexGuard<'_, PendingWrites> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn record(&self, key: &ItemKey) -> Result<Option<Item>, RecordsError> {
        if let Some(pending) = self.pending().records.get(key) {
            return Ok(pending.clone());
        }
        let keys = [key.clone()];
        Ok(self.inner.get_many(&keys).await?.pop().flatten())
    }

    /// Buffers the writes if all their conditions hold.
    async fn buffer(&self, writes: &[Write]) -> Result<(), RecordsError> {
        check_writes(writes)?;
        let mut outcome = Vec::with_capacity(writes.len());
        for (index, write) in writes.iter().enumerate() {
            let there = self.record(write.key()).await?;
            if !write.passes(there.as_ref()) {
                return Err(RecordsError::Failed(index));
            }
            outcome.push((write.key().clone(), there.is_none(), write.applied(there)));
        }
        let mut pending = self.pending();
        for (key, was_missing, item) in outcome {
            if was_missing && !pending.records.contains_key(&key) {
                pending.new.insert(key.clone());
            }
            pending.records.insert(key, item);
        }
        Ok(())
    }
}
