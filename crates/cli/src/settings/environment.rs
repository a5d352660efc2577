//! What the settings want to know of the world, so that tests can make one up.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tollgate::catalog::{login_of, principal_of};

use super::{SettingsError, redacted};
use crate::reading::read_text;

/// How long a config file may be.
const FILE_MAX: u64 = 1 << 20;

/// The variables of the environment, and a way to read files.
pub(crate) struct Environment<'a> {
    variables: &'a dyn Fn(&str) -> Option<OsString>,
    files: &'a dyn Fn(&Path) -> io::Result<String>,
    user: Option<u32>,
}

impl<'a> Environment<'a> {
    /// One that has these.
    pub(crate) fn new(
        variables: &'a dyn Fn(&str) -> Option<OsString>,
        files: &'a dyn Fn(&Path) -> io::Result<String>,
    ) -> Environment<'a> {
        Environment { variables, files, user: None }
    }

    /// The one that this process has.
    pub(crate) fn of_process() -> Environment<'static> {
        let this = Environment::new(&|name| std::env::var_os(name), &|path| read_text(path, FILE_MAX));
        this.with_user(user_number())
    }

    /// The same for the user of this number.
    pub(super) fn with_user(self, user: Option<u32>) -> Environment<'a> {
        Environment { user, ..self }
    }

    /// A variable, unless it is empty, which is as if it were not set.
    fn get(&self, name: &str) -> Option<OsString> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// A variable that is text.
    ///
    /// # Errors
    ///
    /// If it is no text: it was meant to say something, so it is not passed over.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, SettingsError> {
        let text = self.get(name).map(OsString::into_string).transpose();
        text.map_err(|value| {
            let shown = value.to_string_lossy();
            SettingsError(format!("environment {name} is {:?}, which is not valid UTF-8", redacted(&shown)))
        })
    }

    /// A variable that is a path, which may be anything.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    pub(super) fn read(&self, path: &Path) -> io::Result<String> {
        (self.files)(path)
    }

    /// The folder for our data.
    pub(super) fn data_folder(&self) -> Result<PathBuf, SettingsError> {
        self.folder("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
            let why = "neither XDG_DATA_HOME nor HOME is set, so there is no place for the store";
            SettingsError(format!("{why}; name one, such as --store file:limits.db"))
        })
    }

    /// The folder for our config file.
    pub(super) fn config_folder(&self) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME", ".config")
    }

    fn folder(&self, variable: &str, in_home: &str) -> Option<PathBuf> {
        let named = self.path(variable).filter(|folder| folder.is_absolute());
        let base = named.or_else(|| Some(self.path("HOME")?.join(in_home)))?;
        Some(base.join("tollgate"))
    }

    /// The login of the user, as a principal.
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
