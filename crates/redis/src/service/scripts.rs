//! The scripts, which the server knows by a hash of their text.

use redis::{Cmd, Script};

/// A script and its hash.
#[derive(Debug)]
pub(crate) struct Known {
    source: &'static str,
    hash: String,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) apply: Known,
    pub(crate) meters: Known,
    pub(crate) look: Known,
    pub(crate) commit: Known,
    pub(crate) list: Known,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        Scripts {
            apply: Known::new(include_str!("../lua/apply.lua")),
            meters: Known::new(include_str!("../lua/meters.lua")),
            look: Known::new(include_str!("../lua/look.lua")),
            commit: Known::new(include_str!("../lua/commit.lua")),
            list: Known::new(include_str!("../lua/list.lua")),
        }
    }
}

impl Known {
    fn new(source: &'static str) -> Known {
        Known { source, hash: Script::new(source).get_hash().to_owned() }
    }

    /// Runs it, if the server knows it.
    pub(crate) fn run<K: AsRef<[u8]>, A: AsRef<[u8]>>(&self, keys: &[K], arguments: &[A]) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash).arg(keys.len());
        keys.iter().for_each(|key| {
            command.arg(key.as_ref());
        });
        arguments.iter().for_each(|argument| {
            command.arg(argument.as_ref());
        });
        command
    }

    /// Tells it to the server.
    pub(crate) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.source);
        command
    }
}
