//! Opening the store that the settings name.

#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(not(feature = "dynamodb"))]
#[path = "no_dynamodb.rs"]
mod dynamodb;
mod rehearsal;

use std::fmt;
use std::sync::Arc;

use tollgate::Memory;
use tollgate::store::Backend;
use tollgate_file::FileStore;

pub(crate) use rehearsal::Rehearsal;

use crate::settings::{Setting, Settings, Source, StoreUrl};

/// Why the store could not be opened.
#[derive(Debug)]
pub(crate) struct OpenFailed {
    url: String,
    why: String,
}

/// Opens the store. A file is made if it is not there yet; its folder only if nobody named it, so that a slip leaves no
/// folders behind. A table costs money, and is made only if the store says so.
///
/// # Errors
///
/// [`OpenFailed`] with the store and what is wrong with it.
pub(crate) fn open_store(settings: &Settings) -> Result<Arc<dyn Backend>, OpenFailed> {
    let Setting { value, source } = &settings.store;
    match value {
        StoreUrl::Memory => Ok(Arc::new(Memory::default())),
        StoreUrl::File(path) => {
            if let (Source::Default, Some(folder)) = (source, path.parent()) {
                std::fs::create_dir_all(folder).map_err(|why| failed(settings, why))?;
            }
            let store = FileStore::builder(path).timeout(settings.store_timeout.value).build();
            Ok(Arc::new(store.map_err(|why| failed(settings, why))?))
        }
        StoreUrl::Dynamodb(url) => dynamodb::open(url, settings).map_err(|why| failed(settings, why)),
    }
}

/// Whether the store was ever used: a rehearsal must not make one.
pub(crate) fn is_there(settings: &Settings) -> bool {
    match &settings.store.value {
        StoreUrl::Memory => true,
        StoreUrl::File(path) => path.exists(),
        // Without that nothing is made, and one that is not there is an error.
        StoreUrl::Dynamodb(url) => !url.creates || dynamodb::is_there(url, settings),
    }
}

/// What is damaged in the store itself, or missing; nothing if it is whole, or if it is in memory.
///
/// # Errors
///
/// As [`open_store`].
pub(crate) fn damages(settings: &Settings) -> Result<Vec<Damage>, OpenFailed> {
    let (part, problems) = match &settings.store.value {
        StoreUrl::File(path) if path.exists() => {
            let store = FileStore::open(path).map_err(|why| failed(settings, why))?;
            ("the file", store.damages())
        }
        StoreUrl::Dynamodb(url) => {
            ("the table", dynamodb::damages(url, settings).map_err(|why| failed(settings, why))?)
        }
        _ => return Ok(Vec::new()),
    };
    Ok(problems.into_iter().map(|problem| Damage { part, problem }).collect())
}

/// Something that is damaged or missing.
pub(crate) struct Damage {
    /// The part of the store.
    pub(crate) part: &'static str,
    /// What is wrong with it.
    pub(crate) problem: String,
}

fn failed(settings: &Settings, why: impl fmt::Display) -> OpenFailed {
    OpenFailed { url: settings.store.value.to_string(), why: why.to_string() }
}

impl fmt::Display for OpenFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store {} cannot be opened: {}", self.url, self.why)
    }
}

impl std::error::Error for OpenFailed {}
