//! Memory that the processes of one host share.

use std::sync::Arc;

use tollgate::store::Backend;
use tollgate_shm::ShmStore;

use crate::settings::CliSettings;

/// Opens the store of this name, or creates it.
pub(super) fn open(name: &str, settings: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    open_store(name, settings).map(|store| Arc::new(store) as Arc<dyn Backend>)
}

fn open_store(name: &str, settings: &CliSettings) -> Result<ShmStore, String> {
    let store = ShmStore::builder(name).timeout(settings.store_timeout.value);
    store.usage_retention(settings.usage_retention.value.0).build().map_err(|why| why.to_string())
}

/// Returns whether the store exists; true for an invalid name, so that opening it reports the error.
pub(super) fn exists(name: &str) -> bool {
    ShmStore::builder(name).path().map_or(true, |path| path.symlink_metadata().is_ok())
}

/// Returns what is damaged in the store.
pub(super) fn damages(name: &str, settings: &CliSettings) -> Result<Vec<String>, String> {
    let found = open_store(name, settings)?.check();
    Ok(found.err().map(|why| why.to_string()).into_iter().collect())
}
