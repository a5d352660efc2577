//! Environment variables and files that settings are read from, replaceable in tests.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tollgate::catalog::{login_of, principal_of};
use tollgate_open::redacted;

use super::SettingsError;
use crate::reading::read_text;

/// The maximum size of a config file.
const FILE_MAX: u64 = 1 << 20;

/// The environment variables, and a function that reads files.
pub(crate) struct Environment<'a> {
    variables: &'a dyn Fn(&str) -> Option<OsString>,
    files: &'a dyn Fn(&Path) -> io::Result<String>,
    user: Option<u32>,
}

impl<'a> Environment<'a> {
    /// Creates an environment of these variables and files.
    pub(crate) fn new(
        variables: &'a dyn Fn(&str) -> Option<OsString>,
        files: &'a dyn Fn(&Path) -> io::Result<String>,
    ) -> Environment<'a> {
        Environment { variables, files, user: None }
    }

    /// Returns the environment of this process.
    pub(crate) fn of_process() -> Environment<'static> {
        let this = Environment::new(&|name| std::env::var_os(name), &|path| read_text(path, FILE_MAX));
        this.with_user(user_number())
    }

    /// Sets the number of the user.
    pub(super) fn with_user(self, user: Option<u32>) -> Environment<'a> {
        Environment { user, ..self }
    }

    /// Returns a variable. An empty one counts as unset.
    fn get(&self, name: &str) -> Option<OsString> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// Returns a variable as text.
    ///
    /// # Errors
    ///
    /// If it is not valid UTF-8: it is not ignored, because the user has set it.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, SettingsError> {
        let text = self.get(name).map(OsString::into_string).transpose();
        text.map_err(|value| {
            let shown = value.to_string_lossy();
            SettingsError(format!(
                "environment variable {name} is {:?}, which is not valid UTF-8",
                redacted(&shown)
            ))
        })
    }

    /// Returns a variable as a path, which need not be UTF-8.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    pub(super) fn read(&self, path: &Path) -> io::Result<String> {
        (self.files)(path)
    }

    /// Returns the data directory.
    pub(super) fn data_folder(&self) -> Result<PathBuf, SettingsError> {
        self.folder("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
            let why = "neither XDG_DATA_HOME nor HOME is set, so there is no data directory";
            SettingsError(format!("{why}; name a store, such as --store file:limits.db"))
        })
    }

    /// Returns the config directory.
    pub(super) fn config_folder(&self) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME", ".config")
    }

    fn folder(&self, variable: &str, in_home: &str) -> Option<PathBuf> {
        let named = self.path(variable).filter(|folder| folder.is_absolute());
        let base = named.or_else(|| Some(self.path("HOME")?.join(in_home)))?;
        Some(base.join("tollgate"))
    }

    /// Returns the login of the user, as a principal.
    pub(super) fn login(&self) -> String {
        let users = || self.read(Path::new("/etc/passwd")).ok();
        principal_of(|name| self.get(name), || login_of(self.user?, &users()?))
    }
}

#[cfg(unix)]
fn user_number() -> Option<u32> {
    Some(rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn user_number() -> Option<u32> {
    None
}
