//! Installed server programs.

use std::env;
use std::path::{Path, PathBuf};

/// The kind of server.
///
/// ```
/// use tollgate_redis_local::ServerKind;
///
/// assert_eq!(ServerKind::ALL, [ServerKind::Redis, ServerKind::Valkey]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// Redis 7.
    Redis,
    /// Valkey.
    Valkey,
}

impl ServerKind {
    /// Both kinds.
    pub const ALL: [ServerKind; 2] = [ServerKind::Redis, ServerKind::Valkey];

    fn variable(self) -> &'static str {
        match self {
            ServerKind::Redis => "TOLLGATE_REDIS_SERVER",
            ServerKind::Valkey => "TOLLGATE_VALKEY_SERVER",
        }
    }

    fn program(self) -> &'static str {
        match self {
            ServerKind::Redis => "redis-server",
            ServerKind::Valkey => "valkey-server",
        }
    }

    /// Returns the program: the one that the environment names, the one that `cargo xtask servers`
    /// installed, or the one on the path.
    ///
    /// # Panics
    ///
    /// Panics if there is no such program, with how to install one: a test that needs a server must
    /// not pass without it.
    pub fn find(self) -> PathBuf {
        if let Some(named) = env::var_os(self.variable()) {
            return named.into();
        }
        let installed = folder().map(|folder| folder.join("usr/bin").join(self.program()));
        let path = env::var_os("PATH").unwrap_or_default();
        let on_path = env::split_paths(&path).map(|folder| folder.join(self.program()));
        let mut candidates = installed.into_iter().chain(on_path);
        candidates.find(|program| program.is_file()).unwrap_or_else(|| {
            panic!(
                "{} was not found; install it with `cargo xtask servers`, or name it in {}",
                self.program(),
                self.variable()
            )
        })
    }
}

/// Returns the folder that `cargo xtask servers` installs to: beside the one that this program was
/// built into.
fn folder() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    program.ancestors().map(|folder| folder.join("redis")).find(|folder| folder.join("usr/bin").is_dir())
}

/// Returns the libraries that were installed with a program, if there are any.
pub(crate) fn libraries(program: &Path) -> Vec<PathBuf> {
    let Some(lib) = program.ancestors().nth(2).map(|usr| usr.join("lib")) else { return Vec::new() };
    let entries = lib.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}
