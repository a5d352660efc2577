//! Memory that the processes of one host share.

use tollgate_shm::{ShmOpenError, ShmStore};

use crate::OpenOptions;

/// Opens the store of this name, or creates it.
pub(crate) fn open(name: &str, options: &OpenOptions) -> Result<ShmStore, ShmOpenError> {
    let mut builder = ShmStore::builder(name).usage_retention(options.usage_retention);
    if let Some(timeout) = options.timeout {
        builder = builder.timeout(timeout);
    }
    builder.build()
}

/// Returns whether the store exists; true for an invalid name, so that opening it reports the error.
pub(crate) fn exists(name: &str) -> bool {
    ShmStore::builder(name).path().map_or(true, |path| path.symlink_metadata().is_ok())
}

/// Returns what is damaged in the store.
pub(crate) fn damages(store: &ShmStore) -> Vec<String> {
    store.check().err().map(|why| why.to_string()).into_iter().collect()
}
