//! Opening the store that the settings name.

mod dry_run;
#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(not(feature = "dynamodb"))]
#[path = "no_dynamodb.rs"]
mod dynamodb;
#[cfg(feature = "redis")]
mod redis;
#[cfg(not(feature = "redis"))]
#[path = "no_redis.rs"]
mod redis;
#[cfg(all(feature = "shm", target_os = "linux"))]
mod shm;
#[cfg(not(all(feature = "shm", target_os = "linux")))]
#[path = "no_shm.rs"]
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

/// Opens the store. A file is made if it is not there yet; its folder only if the path is the default, so that a slip
/// leaves no folders behind. A table costs money, and is made only if the store says so.
///
/// # Errors
///
/// [`OpenFailed`] with the store and what is wrong with it, or those of [`CliSettings::store`].
pub(crate) fn open_store(settings: &CliSettings) -> Result<Arc<dyn Backend>> {
    let (Setting { value, source }, kept) = (settings.store()?, settings.usage_retention.value.0);
    let failed = |why: &dyn fmt::Display| OpenFailed { url: value.to_string(), why: why.to_string() };
    match value {
        StoreUrl::Memory => Ok(Arc::new(Memory::builder().usage_retention(kept).build())),
        StoreUrl::File(path) => {
            if let (SettingSource::Default, Some(folder)) = (source, path.parent()) {
                std::fs::create_dir_all(folder).map_err(|why| failed(&why))?;
            }
            let store = FileStore::builder(path).timeout(settings.store_timeout.value);
            let store = store.usage_retention(kept).build();
            Ok(Arc::new(store.map_err(|why| failed(&why))?))
        }
        StoreUrl::Shm(name) => Ok(shm::open(name, settings).map_err(|why| failed(&why))?),
        StoreUrl::Dynamodb(url) => Ok(dynamodb::open(url, settings).map_err(|why| failed(&why))?),
        StoreUrl::Redis(url) => Ok(redis::open(url, settings).map_err(|why| failed(&why))?),
    }
}

/// Opens the store as the table that it has to be, for what only a table has.
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

/// Whether the store was ever used: a rehearsal must not make one.
pub(crate) fn is_there(settings: &CliSettings) -> Result<bool, SettingsError> {
    Ok(match &settings.store()?.value {
        // A server needs no making.
        StoreUrl::Memory | StoreUrl::Redis(_) => true,
        StoreUrl::File(path) => path.exists(),
        StoreUrl::Shm(name) => shm::is_there(name),
        // Without that nothing is made, and one that is not there is an error.
        StoreUrl::Dynamodb(url) => !url.creates || dynamodb::is_there(url, settings),
    })
}

/// Returns whether the store could be made: readers, too, get an error about what prevents it.
pub(crate) fn can_be_there(settings: &CliSettings) -> Result<bool, SettingsError> {
    let Setting { value, source } = settings.store()?;
    Ok(match (value, source) {
        (StoreUrl::Memory | StoreUrl::Shm(_) | StoreUrl::Dynamodb(_) | StoreUrl::Redis(_), _)
        | (_, SettingSource::Default) => true,
        // A path without a folder is in this one.
        (StoreUrl::File(path), _) => path.parent().is_none_or(|it| it.as_os_str().is_empty() || it.is_dir()),
    })
}

/// That there is no such store.
pub(crate) fn not_there(settings: &CliSettings) -> Result<OpenFailed, SettingsError> {
    let url = &settings.store()?.value;
    let what = if matches!(url, StoreUrl::Shm(_)) { "store" } else { "file" };
    let why = format!("there is no such {what}; the first command that writes something makes it");
    Ok(OpenFailed { url: url.to_string(), why })
}

/// What is damaged in the store itself, or missing; nothing if it is whole, or if it is in memory.
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
        StoreUrl::Shm(name) if shm::is_there(name) => {
            ("the memory", shm::damages(name, settings).map_err(|why| failed(&why))?)
        }
        StoreUrl::Dynamodb(url) => {
            ("the table", dynamodb::damages(url, settings).map_err(|why| failed(&why))?)
        }
        StoreUrl::Redis(url) => ("the server", redis::damages(url, settings).map_err(|why| failed(&why))?),
        _ => return Ok(Vec::new()),
    };
    Ok(problems.into_iter().map(|problem| StoreDamage { part, problem }).collect())
}

/// Something that is damaged or missing.
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
