//! Completion in shells: commands and options from the command line, names from the store.
//!
//! clap_complete has the scripts of the shells and finds out what is to be completed; its dynamic engine costs one small
//! dependency, and a grammar of our own would be a second one beside clap's. The shell starts this program with
//! [`VARIABLE`] set. It answers with candidates, reads the store only if a name is to be completed, creates none, and is
//! silent about errors: a message would be written into the command line that the user types.

mod names;

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};

use crate::args::Cli;
use names::CompletedKind;

/// Names the shell whose completion this process answers. No setting: its name does not begin as theirs do.
const VARIABLE: &str = "_TOLLGATE_COMPLETE";

/// The name that the user types.
const PROGRAM: &str = "tollgate";

/// Answers a shell that completes a command line. Returns false if no shell asks.
pub(crate) fn answer(words: &[OsString]) -> bool {
    // Without the name of the program, clap_complete would panic.
    if words.is_empty() {
        return false;
    }
    let folder = std::env::current_dir().ok();
    let typed = words.iter().skip_while(|word| *word != "--").skip(1).cloned().collect::<Vec<_>>();
    let command = || with_names(Cli::command(), &typed);
    let answered = CompleteEnv::with_factory(command).var(VARIABLE).bin(PROGRAM).completer(PROGRAM);
    // An error is ignored: the shell then completes nothing.
    answered.try_complete(words.iter().cloned(), folder.as_deref()).unwrap_or(true)
}

/// Writes the script that makes a shell ask.
///
/// # Errors
///
/// The shell has no script.
pub(crate) fn script(shell: &str) -> std::io::Result<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or(std::io::ErrorKind::NotFound)?;
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    String::from_utf8(script).map_err(std::io::Error::other)
}

/// Completes the arguments that are names of something in the store. Options are hidden: they are candidates only where there
/// are no names, or if the word begins as an option.
fn with_names(command: Command, typed: &[OsString]) -> Command {
    let command = command.mut_args(|arg| {
        let is_option = !arg.is_positional();
        let arg = arg.hide(is_option);
        let kinds = CompletedKind::of_arg(&arg);
        if kinds.is_empty() {
            return arg;
        }
        arg.add(ArgValueCompleter::new(NameCompleter { kinds, typed: typed.to_vec() }))
    });
    command.mut_subcommands(|below| with_names(below, typed))
}

/// Completes the values of an argument.
struct NameCompleter {
    /// What each value names; the last one stands for those after it.
    kinds: Vec<CompletedKind>,
    /// The command line, with the name of the program.
    typed: Vec<OsString>,
}

impl ValueCompleter for NameCompleter {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        self.complete_at(0, current)
    }

    fn complete_at(&self, place: usize, current: &OsStr) -> Vec<CompletionCandidate> {
        let kind = self.kinds.get(place).or(self.kinds.last());
        let (Some(kind), Some(current)) = (kind, current.to_str()) else { return Vec::new() };
        let names = names::read(*kind, &self.typed).unwrap_or_default();
        let fitting = names.into_iter().filter(|name| name.starts_with(current));
        // The id keeps a name from being offered twice, for two arguments that the word may be of.
        fitting.map(|name| CompletionCandidate::new(&name).id(Some(name))).collect()
    }
}

impl CompletedKind {
    /// Returns what the values of an argument name, by their placeholders in the help.
    fn of_arg(arg: &Arg) -> Vec<CompletedKind> {
        let names = arg.get_value_names().unwrap_or_default();
        let kind = |name: &str| match (name, arg.is_positional(), arg.get_id().as_str()) {
            ("ENTITY", ..) => Some(CompletedKind::Entity),
            ("RESOURCE", ..) => Some(CompletedKind::Resource),
            ("LIMIT=AMOUNT", ..) => Some(CompletedKind::Amount),
            ("LIMIT", true, _) | ("NAME", false, "limit") => Some(CompletedKind::Limit),
            ("NAME", true, "name") | ("NAME", false, "namespace") => Some(CompletedKind::Namespace),
            ("SET", true, _) => Some(CompletedKind::LimitSet),
            ("SET", false, _) => Some(CompletedKind::ManagedSet),
            _ => None,
        };
        names.iter().filter_map(|name| kind(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments that are completed from the store, as `command argument`.
    fn completed(command: &Command, path: &str, found: &mut Vec<String>) {
        for arg in command.get_arguments().filter(|arg| !CompletedKind::of_arg(arg).is_empty()) {
            found.push(format!("{path} {}", arg.get_id()));
        }
        for below in command.get_subcommands() {
            completed(below, &format!("{path} {}", below.get_name()), found);
        }
    }

    #[test]
    fn every_argument_that_names_something_in_the_store_is_completed() {
        let mut found = Vec::new();
        completed(&Cli::command(), "tollgate", &mut found);
        for arg in [
            "tollgate namespace",
            "tollgate run entity",
            "tollgate run resource",
            "tollgate run amounts",
            "tollgate acquire words",
            "tollgate namespace delete name",
            "tollgate entity create parent",
            "tollgate resource capacity limit",
            "tollgate usage plot limit",
            "tollgate set show name",
            "tollgate limits export set",
        ] {
            assert!(found.iter().any(|name| name == arg), "{arg}: {found:#?}");
        }
        for new in ["tollgate entity create name", "tollgate namespace register names"] {
            assert!(!found.iter().any(|name| name == new), "{new} is a new name");
        }
    }
}
