//! Opening of the store that the settings name.

mod dry_run;
#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "redis")]
mod redis;
#[cfg(all(feature = "shm", target_os = "linux"))]
mod shm;

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use tollgate::Memory;
use tollgate::store::Backend;
use tollgate_file::FileStore;

pub(crate) use dry_run::DryRunStore;

#[cfg(feature = "dynamodb")]
use crate::exit::UsageError;
use crate::settings::{CliSettings, Setting, SettingSource, SettingsError, StoreUrl};

/// Why the store could not be opened.
#[derive(Debug)]
pub(crate) struct OpenFailed {
    url: String,
    why: String,
}

/// Opens the store. A file is created if it does not exist; its directory only if the path is the default, so that a typo
/// leaves no directories behind. A table costs money, and is created only if the address says so.
///
/// # Errors
///
/// [`OpenFailed`] with the store and the reason, or those of [`CliSettings::store`].
pub(crate) fn open_store(settings: &CliSettings) -> Result<Arc<dyn Backend>> {
    let Setting { value, source } = settings.store()?;
    let retention = settings.usage_retention.value.0;
    let failed = |why: &dyn fmt::Display| OpenFailed { url: value.to_string(), why: why.to_string() };
    match value {
        StoreUrl::Memory => Ok(Arc::new(Memory::builder().usage_retention(retention).build())),
        StoreUrl::File(path) => {
            if let (SettingSource::Default, Some(folder)) = (source, path.parent()) {
                std::fs::create_dir_all(folder).map_err(|why| failed(&why))?;
            }
            let store = FileStore::builder(path).timeout(settings.store_timeout.value);
            let store = store.usage_retention(retention).build();
            Ok(Arc::new(store.map_err(|why| failed(&why))?))
        }
        #[cfg(all(feature = "shm", target_os = "linux"))]
        StoreUrl::Shm(name) => Ok(shm::open(name, settings).map_err(|why| failed(&why))?),
        #[cfg(feature = "dynamodb")]
        StoreUrl::Dynamodb(url) => Ok(dynamodb::open(url, settings).map_err(|why| failed(&why))?),
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => Ok(redis::open(url, settings).map_err(|why| failed(&why))?),
    }
}

/// Opens the store as a DynamoDB table, for commands that need its stream.
///
/// # Errors
///
/// [`UsageError`] if it is another store, and as [`open_store`].
#[cfg(feature = "dynamodb")]
pub(crate) fn open_dynamodb(settings: &CliSettings) -> Result<tollgate_dynamo::DynamoStore> {
    let store = &settings.store()?.value;
    let StoreUrl::Dynamodb(url) = store else {
        let why = format!("the store is {store}, and only a table has a stream");
        return Err(UsageError(format!("{why}; name one with --store dynamodb:TABLE")).into());
    };
    let failed = |why| OpenFailed { url: store.to_string(), why };
    Ok(dynamodb::open_table(url, settings).map_err(failed)?)
}

/// Returns whether the store exists, so that a dry run does not create it.
pub(crate) fn exists(settings: &CliSettings) -> Result<bool, SettingsError> {
    Ok(match &settings.store()?.value {
        StoreUrl::Memory => true,
        // A server is never created.
        #[cfg(feature = "redis")]
        StoreUrl::Redis(_) => true,
        StoreUrl::File(path) => path.exists(),
        #[cfg(all(feature = "shm", target_os = "linux"))]
        StoreUrl::Shm(name) => shm::exists(name),
        // Unless the address says so no table is created, and opening a missing one is an error.
        #[cfg(feature = "dynamodb")]
        StoreUrl::Dynamodb(url) => !url.creates || dynamodb::exists(url, settings),
    })
}

/// Returns whether the store could be created: if not, readers get the error, too.
pub(crate) fn can_be_created(settings: &CliSettings) -> Result<bool, SettingsError> {
    let Setting { value, source } = settings.store()?;
    Ok(match (value, source) {
        // A path without a directory is in the current one.
        (StoreUrl::File(path), source) if *source != SettingSource::Default => {
            path.parent().is_none_or(|dir| dir.as_os_str().is_empty() || dir.is_dir())
        }
        _ => true,
    })
}

/// Returns the error for a store that does not exist.
pub(crate) fn missing_store(settings: &CliSettings) -> Result<OpenFailed, SettingsError> {
    let url = &settings.store()?.value;
    let what = if matches!(url, StoreUrl::File(_)) { "file" } else { "store" };
    let why = format!("there is no such {what}; the first command that writes creates it");
    Ok(OpenFailed { url: url.to_string(), why })
}

/// Returns what is damaged or missing in the store itself; nothing for a store in memory.
///
/// # Errors
///
/// As [`open_store`].
pub(crate) fn damages(settings: &CliSettings) -> Result<Vec<StoreDamage>> {
    let url = &settings.store()?.value;
    let failed = |why: &dyn fmt::Display| OpenFailed { url: url.to_string(), why: why.to_string() };
    let (part, problems) = match url {
        StoreUrl::File(path) if path.exists() => {
            let store = FileStore::open(path).map_err(|why| failed(&why))?;
            ("the file", store.damages())
        }
        #[cfg(all(feature = "shm", target_os = "linux"))]
        StoreUrl::Shm(name) if shm::exists(name) => {
            ("the memory", shm::damages(name, settings).map_err(|why| failed(&why))?)
        }
        #[cfg(feature = "dynamodb")]
        StoreUrl::Dynamodb(url) => {
            ("the table", dynamodb::damages(url, settings).map_err(|why| failed(&why))?)
        }
        #[cfg(feature = "redis")]
        StoreUrl::Redis(url) => ("the server", redis::damages(url, settings).map_err(|why| failed(&why))?),
        _ => return Ok(Vec::new()),
    };
    Ok(problems.into_iter().map(|problem| StoreDamage { part, problem }).collect())
}

/// A damaged or missing part of a store.
pub(crate) struct StoreDamage {
    /// The part of the store.
    pub(crate) part: &'static str,
    /// What is wrong with it.
    pub(crate) problem: String,
}

impl fmt::Display for OpenFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store {} cannot be opened: {}", self.url, self.why)
    }
}

impl std::error::Error for OpenFailed {}
