//! The config file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::suggest::nearest;
use super::{Environment, KEYS, SettingKey, SettingsError, redacted};

/// What the config file says.
pub(super) struct ConfigFile {
    /// Where it is, or would be. Without a home there is no such place.
    pub(super) path: Option<PathBuf>,
    /// Whether it is there.
    pub(super) is_there: bool,
    table: Table,
}

impl ConfigFile {
    /// Reads the file that the flag or the environment names, or the one in its usual place if it is there.
    pub(super) fn find(flag: Option<&Path>, env: &Environment<'_>) -> Result<ConfigFile, SettingsError> {
        let named = flag.map(Path::to_path_buf).or_else(|| env.path("TOLLGATE_CONFIG"));
        let must_be_there = named.is_some();
        let Some(path) = named.or_else(|| env.config_folder().map(|folder| folder.join("config.toml")))
        else {
            return Ok(ConfigFile { path: None, is_there: false, table: Table::new() });
        };
        match env.read(&path) {
            Ok(text) => {
                let table = parse(&path, &text)?;
                Ok(ConfigFile { path: Some(path), is_there: true, table })
            }
            Err(why) if why.kind() == ErrorKind::NotFound && !must_be_there => {
                Ok(ConfigFile { path: Some(path), is_there: false, table: Table::new() })
            }
            Err(why) => Err(SettingsError(format!("{} cannot be read: {why}", path.display()))),
        }
    }

    /// The text of a key, if it is there, and the file that says so.
    pub(super) fn text(&self, key: &SettingKey) -> Result<Option<(&str, &Path)>, SettingsError> {
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        match self.table.get(key.name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some((text, path))),
            Some(other) => {
                let other = other.to_string();
                let (name, other, example) = (key.name, redacted(&other), key.example);
                let said = format!("{name} is {other}, but must be text, such as {example:?}");
                Err(SettingsError(format!("file {}: {said}", path.display())))
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
            let said = format!("{unknown:?} is no setting; {}", hint(unknown));
            Err(SettingsError(format!("file {}: {said}", path.display())))
        }
    }
}

/// What is wrong with a file. The line it is in is left out if it has a password in it.
fn shown(why: &toml::de::Error) -> String {
    let said = why.to_string();
    match redacted(&said) == said {
        true => said.trim_end().into(),
        false => format!("{}: {}", said.lines().next().unwrap_or_default(), redacted(why.message())),
    }
}

fn hint(unknown: &str) -> String {
    let names = KEYS.map(|key| key.name);
    if let Some(meant) = nearest(unknown, &names) {
        return format!("did you mean {meant:?}?");
    }
    let (last, first) = names.split_last().unwrap_or((&"", &[]));
    format!("there are {} and {last}", first.join(", "))
}
