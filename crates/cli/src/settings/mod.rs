//! Settings: a flag wins over an environment variable, that over the config file, that over the default.
//!
//! Every value has its source, which `tollgate config show --sources` shows.

mod color;
mod environment;
mod error;
mod file;
mod keys;
mod retention;
mod store;
pub(crate) mod suggest;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tollgate_open::{StoreUrl, redacted};

pub(crate) use color::Color;
pub(crate) use environment::Environment;
pub(crate) use error::SettingsError;
pub(crate) use keys::{KEYS, SettingKey};
pub(crate) use retention::{Retention, UsageRetentionArg};
pub(crate) use store::parse_store;

use crate::args::GlobalArgs;
use crate::{duration_text, names};
use file::ConfigFile;

/// The default timeout of a call to the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The default retention of audit events.
const AUDIT_RETENTION: Retention = Retention(Some(Duration::from_secs(90 * 86_400)));

/// The default lifetime of cached limits and entities.
const CACHE_TTL: Duration = Duration::from_secs(60);

/// All settings of the command.
#[derive(Clone, Debug)]
pub(crate) struct CliSettings {
    /// The store. Its error is reported only by commands that need the store.
    store: Result<Setting<StoreUrl>, SettingsError>,
    /// The namespace that commands work in.
    pub(crate) namespace: Setting<String>,
    /// The principal of audit events.
    pub(crate) principal: Setting<String>,
    /// Whether output is coloured.
    pub(crate) color: Setting<Color>,
    /// The timeout of a call to the store.
    pub(crate) store_timeout: Setting<Duration>,
    /// How long audit events are kept.
    pub(crate) audit_retention: Setting<Retention>,
    /// How long usage is kept.
    pub(crate) usage_retention: Setting<UsageRetentionArg>,
    /// How long limits and entities are cached.
    pub(crate) cache_ttl: Setting<Duration>,
    /// The path of the config file, and whether it exists.
    pub(crate) config: Option<(PathBuf, bool)>,
}

/// A value and its source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting<T> {
    /// The value.
    pub(crate) value: T,
    /// Its source.
    pub(crate) source: SettingSource,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingSource {
    /// A flag on the command line.
    Flag(&'static str),
    /// An environment variable.
    Environment(&'static str),
    /// The config file.
    File(PathBuf),
    /// No source sets it.
    Default,
}

impl CliSettings {
    /// Resolves all settings.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] if the config file cannot be read or has an unknown key, and for an invalid value in it or
    /// in an environment variable, except for that of the store. Flags are validated by the parser.
    pub(crate) fn resolve(flags: &GlobalArgs, env: &Environment<'_>) -> Result<CliSettings, SettingsError> {
        let file = ConfigFile::find(flags.config.as_deref(), env)?;
        let choose = Choose { env, file: &file };
        let default_store = || env.data_folder().map(|folder| StoreUrl::File(folder.join("tollgate.db")));
        Ok(CliSettings {
            store: choose.value(&keys::STORE, flags.store.clone(), parse_store, default_store),
            namespace: choose.value(&keys::NAMESPACE, flags.namespace.clone(), names::namespace, || {
                Ok(tollgate::limiter::DEFAULT_NAMESPACE.into())
            })?,
            principal: choose
                .value(&keys::PRINCIPAL, flags.principal.clone(), names::principal, || Ok(env.login()))?,
            color: choose.value(&keys::COLOR, flags.color, Color::parse, || Ok(Color::Auto))?,
            store_timeout: choose.value(
                &keys::STORE_TIMEOUT,
                flags.store_timeout,
                duration_text::parse,
                || Ok(STORE_TIMEOUT),
            )?,
            audit_retention: choose.value(
                &keys::AUDIT_RETENTION,
                flags.audit_retention,
                Retention::parse,
                || Ok(AUDIT_RETENTION),
            )?,
            usage_retention: choose.value(
                &keys::USAGE_RETENTION,
                flags.usage_retention,
                UsageRetentionArg::parse,
                || Ok(UsageRetentionArg::default()),
            )?,
            cache_ttl: choose
                .value(&keys::CACHE_TTL, flags.cache_ttl, duration_text::parse, || Ok(CACHE_TTL))?,
            config: file.path.clone().map(|path| (path, file.exists)),
        })
    }

    /// Returns the store.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] if the value in the config file or the environment variable is not valid, or if no source sets it
    /// and there is no data directory.
    pub(crate) fn store(&self) -> Result<&Setting<StoreUrl>, SettingsError> {
        self.store.as_ref().map_err(Clone::clone)
    }

    /// Returns each key with its value and its source.
    ///
    /// # Errors
    ///
    /// As [`store`](CliSettings::store).
    pub(crate) fn rows(&self) -> Result<[(&'static SettingKey, String, &SettingSource); 8], SettingsError> {
        let store = self.store()?;
        Ok([
            (&keys::STORE, redacted(&store.value.to_string()).into_owned(), &store.source),
            (&keys::NAMESPACE, self.namespace.value.clone(), &self.namespace.source),
            (&keys::PRINCIPAL, self.principal.value.clone(), &self.principal.source),
            (&keys::COLOR, self.color.value.to_string(), &self.color.source),
            (
                &keys::STORE_TIMEOUT,
                duration_text::print(self.store_timeout.value),
                &self.store_timeout.source,
            ),
            (&keys::AUDIT_RETENTION, self.audit_retention.value.to_string(), &self.audit_retention.source),
            (&keys::USAGE_RETENTION, self.usage_retention.value.to_string(), &self.usage_retention.source),
            (&keys::CACHE_TTL, duration_text::print(self.cache_ttl.value), &self.cache_ttl.source),
        ])
    }
}

struct Choose<'a> {
    env: &'a Environment<'a>,
    file: &'a ConfigFile,
}

impl Choose<'_> {
    fn value<T>(
        &self,
        key: &SettingKey,
        flag: Option<T>,
        parse: impl Fn(&str) -> Result<T, String>,
        default: impl FnOnce() -> Result<T, SettingsError>,
    ) -> Result<Setting<T>, SettingsError> {
        let parsed = |text: &str, source: SettingSource| match parse(text) {
            Ok(value) => Ok(Setting { value, source }),
            Err(why) => Err(SettingsError::bad_value(key, text, &source, why)),
        };
        // An error in the file is reported, whether or not the value would be used.
        let in_file = self.file.text(key)?.map(|(text, path)| parsed(text, SettingSource::File(path.into())));
        let in_file = in_file.transpose()?;
        if let Some(value) = flag {
            return Ok(Setting { value, source: SettingSource::Flag(key.flag) });
        }
        if let Some(text) = self.env.text(key.variable)? {
            return parsed(&text, SettingSource::Environment(key.variable));
        }
        match in_file {
            Some(setting) => Ok(setting),
            None => Ok(Setting { value: default()?, source: SettingSource::Default }),
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Flag(flag) => write!(f, "flag {flag}"),
            SettingSource::Environment(variable) => write!(f, "environment variable {variable}"),
            SettingSource::File(path) => write!(f, "file {}", path.display()),
            SettingSource::Default => f.write_str("default"),
        }
    }
}

#[cfg(test)]
mod tests;
