//! Opening of the store that the settings name.

mod dry_run;

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tollgate::store::Backend;
use tollgate_open::{DamagesError, OpenError, OpenOptions, StoreDamage, StoreUrl};

pub(crate) use dry_run::DryRunStore;

#[cfg(feature = "dynamodb")]
use crate::exit::UsageError;
use crate::settings::{CliSettings, Setting, SettingSource, SettingsError};

/// How long a command tries to connect while no host accepts the connection: a refused connection is an answer.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

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
    let Setting { value: url, source } = settings.store()?;
    if let (StoreUrl::File(path), SettingSource::Default) = (url, source)
        && let Some(folder) = path.parent()
    {
        std::fs::create_dir_all(folder).map_err(|why| OpenFailed::new(url, &why))?;
    }
    let opened = url.open(&options(settings)).wait();
    Ok(opened.map_err(|error| OpenFailed::new(url, &reason(&error)))?)
}

/// Opens the store as a DynamoDB table, for commands that need its stream.
///
/// # Errors
///
/// [`UsageError`] if it is another store, and as [`open_store`].
#[cfg(feature = "dynamodb")]
pub(crate) fn open_dynamodb(settings: &CliSettings) -> Result<tollgate_dynamo::DynamoStore> {
    let url = &settings.store()?.value;
    let StoreUrl::Dynamodb(table) = url else {
        let why = format!("the store is {url}, and only a table has a stream");
        return Err(UsageError(format!("{why}; name one with --store dynamodb:TABLE")).into());
    };
    let opened = table.open_table(&options(settings)).wait();
    Ok(opened.map_err(|error| OpenFailed::new(url, &reason(&error)))?)
}

/// Returns whether the store exists, so that a dry run does not create it.
pub(crate) fn exists(settings: &CliSettings) -> Result<bool, SettingsError> {
    Ok(settings.store()?.value.exists(&options(settings)).wait())
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
    Ok(OpenFailed::new(url, &why))
}

/// Returns what is damaged or missing in the store itself; nothing for a store in memory.
///
/// # Errors
///
/// As [`open_store`].
pub(crate) fn damages(settings: &CliSettings) -> Result<Vec<StoreDamage>> {
    let url = &settings.store()?.value;
    let damages = url.damages(&options(settings)).wait();
    Ok(damages.map_err(|error| match error {
        DamagesError::Open(error) => OpenFailed::new(url, &reason(&error)),
        error => OpenFailed::new(url, &error),
    })?)
}

fn options(settings: &CliSettings) -> OpenOptions {
    OpenOptions::default()
        .timeout(settings.store_timeout.value)
        .usage_retention(settings.usage_retention.value.0)
        .connect_within(CONNECT_WITHIN)
}

/// Returns why the store could not be opened. For a missing table that is how to create it with a command.
fn reason(error: &OpenError) -> String {
    #[cfg(feature = "dynamodb")]
    if let OpenError::NoTable { table, location, creating } = error {
        return format!(
            "there is no table {table:?} in {location}; name another one, or create it with the template in \
             deploy/, or with --store '{creating}'"
        );
    }
    error.to_string()
}

impl OpenFailed {
    fn new(url: &StoreUrl, why: &dyn Display) -> OpenFailed {
        OpenFailed { url: url.to_string(), why: why.to_string() }
    }
}

impl Display for OpenFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store {} cannot be opened: {}", self.url, self.why)
    }
}

impl std::error::Error for OpenFailed {}
