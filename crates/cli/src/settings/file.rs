//! The config file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tollgate_open::redacted;
use toml::{Table, Value};

use super::suggest::nearest;
use super::{Environment, KEYS, SettingKey, SettingsError};

/// The config file.
pub(super) struct ConfigFile {
    /// Its path, whether or not it exists. `None` without a home directory.
    pub(super) path: Option<PathBuf>,
    /// Whether it exists.
    pub(super) exists: bool,
    table: Table,
}

impl ConfigFile {
    /// Reads the file that the flag or the environment variable names, or the one at the default path if it exists.
    pub(super) fn find(flag: Option<&Path>, env: &Environment<'_>) -> Result<ConfigFile, SettingsError> {
        let named = flag.map(Path::to_path_buf).or_else(|| env.path("TOLLGATE_CONFIG"));
        let require_store = named.is_some();
        let Some(path) = named.or_else(|| env.config_folder().map(|folder| folder.join("config.toml")))
        else {
            return Ok(ConfigFile { path: None, exists: false, table: Table::new() });
        };
        match env.read(&path) {
            Ok(text) => {
                let table = parse(&path, &text)?;
                Ok(ConfigFile { path: Some(path), exists: true, table })
            }
            Err(why) if why.kind() == ErrorKind::NotFound && !require_store => {
                Ok(ConfigFile { path: Some(path), exists: false, table: Table::new() })
            }
            Err(why) => Err(SettingsError(format!("{} cannot be read: {why}", path.display()))),
        }
    }

    /// Returns the text of a key, if it is set, and the path of the file.
    pub(super) fn text(&self, key: &SettingKey) -> Result<Option<(&str, &Path)>, SettingsError> {
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        match self.table.get(key.name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some((text, path))),
            Some(other) => {
                let other = other.to_string();
                let SettingKey { name, example, .. } = key;
                let other = redacted(&other);
                let message = format!("{name} is {other}, but must be a string, such as {example:?}");
                Err(SettingsError(format!("file {}: {message}", path.display())))
            }
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Table, SettingsError> {
    let broken =
        |why: toml::de::Error| SettingsError(format!("{} cannot be read: {}", path.display(), shown(&why)));
    let table: Table = text.parse().map_err(broken)?;
    match table.keys().find(|name| KEYS.iter().all(|key| key.name != name.as_str())) {
        None => Ok(table),
        Some(unknown) => {
            let message = format!("{unknown:?} is not a setting; {}", hint(unknown));
            Err(SettingsError(format!("file {}: {message}", path.display())))
        }
    }
}

/// Formats a parse error. The line of the file is left out if it contains a password.
fn shown(why: &toml::de::Error) -> String {
    let message = why.to_string();
    if redacted(&message) == message {
        return message.trim_end().into();
    }
    format!("{}: {}", message.lines().next().unwrap_or_default(), redacted(why.message()))
}

fn hint(unknown: &str) -> String {
    let names = KEYS.map(|key| key.name);
    if let Some(meant) = nearest(unknown, &names) {
        return format!("did you mean {meant:?}?");
    }
    let (last, first) = names.split_last().unwrap_or((&"", &[]));
    format!("valid are {} and {last}", first.join(", "))
}
