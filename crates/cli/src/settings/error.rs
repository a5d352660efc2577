use std::fmt;

use tollgate_open::redacted;

use super::{SettingKey, SettingSource};

/// An error in the config file or an environment variable.
#[derive(Clone, Debug)]
pub(crate) struct SettingsError(pub(crate) String);

impl SettingsError {
    pub(super) fn bad_value(
        key: &SettingKey,
        text: &str,
        source: &SettingSource,
        why: String,
    ) -> SettingsError {
        // The parameters of a store may contain a secret by mistake, so they are left out.
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
