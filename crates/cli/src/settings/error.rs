use std::fmt;

use super::{SettingKey, SettingSource, redacted};

/// What is wrong with the config file or a variable of the environment.
#[derive(Clone, Debug)]
pub(crate) struct SettingsError(pub(crate) String);

impl SettingsError {
    pub(super) fn bad_value(
        key: &SettingKey,
        text: &str,
        source: &SettingSource,
        why: String,
    ) -> SettingsError {
        // What stands behind the question mark of a store may be a secret that has no place there.
        let text = text.split_once('?').map_or(text, |(before, _)| before);
        SettingsError(format!("{source}: {} is {:?}: {why}", key.name, redacted(text)))
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}
