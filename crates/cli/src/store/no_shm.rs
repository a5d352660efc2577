//! The error of a program that was built without shared memory.

use std::sync::Arc;

use tollgate::store::Backend;

use crate::settings::CliSettings;

const MISSING: &str =
    "this program was built without shared memory; on Linux, build it with the feature `shm`";

/// Fails: there is no such store.
pub(super) fn open(_: &str, _: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    Err(MISSING.into())
}

/// Returns true, so that opening it reports the error.
pub(super) fn exists(_: &str) -> bool {
    true
}

/// As [`open`].
pub(super) fn damages(_: &str, _: &CliSettings) -> Result<Vec<String>, String> {
    Err(MISSING.into())
}
