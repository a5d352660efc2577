//! Scripts, which the server has by a hash of their text.

use std::borrow::Cow;
use std::sync::Arc;

use redis::{Cmd, Script};

use super::meters::{Meters, ScriptClock};

/// A script and its hash.
#[derive(Debug)]
pub(crate) struct LoadedScript {
    source: Cow<'static, str>,
    hash: String,
}

/// All scripts of a store.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) apply: Arc<LoadedScript>,
    pub(crate) meters: Meters,
    pub(crate) look: LoadedScript,
    pub(crate) commit: LoadedScript,
    pub(crate) list: LoadedScript,
    pub(crate) leave: LoadedScript,
}

impl Scripts {
    /// Returns all scripts. The one for meters remembers outcomes for so many milliseconds.
    pub(crate) fn new(time: ScriptClock, remembered_ms: String) -> Scripts {
        Scripts {
            apply: Arc::new(LoadedScript::new(include_str!("../lua/apply.lua"))),
            meters: Meters::new(time, remembered_ms),
            look: LoadedScript::new(include_str!("../lua/look.lua")),
            commit: LoadedScript::new(include_str!("../lua/commit.lua")),
            list: LoadedScript::new(include_str!("../lua/list.lua")),
            leave: LoadedScript::new(include_str!("../lua/leave.lua")),
        }
    }
}

impl LoadedScript {
    pub(super) fn new(source: impl Into<Cow<'static, str>>) -> LoadedScript {
        let source = source.into();
        LoadedScript { hash: Script::new(&source).get_hash().to_owned(), source }
    }

    /// Returns the command that runs it, if the server has it.
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

    /// Returns the command that loads it into the server.
    pub(crate) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.source.as_ref());
        command
    }
}
