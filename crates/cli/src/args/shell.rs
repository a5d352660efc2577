use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

/// Help for `tollgate reference`.
pub(super) const REFERENCE: &str = "Example:\n  tollgate reference > docs/reference/cli.md";

/// What can be done with the settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting
    #[command(after_help = "Example:\n  tollgate config show --sources")]
    Show {
        /// Show where each value came from, too
        #[arg(long)]
        sources: bool,
    },
}

/// Which shell.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate completions bash > \\
    ~/.local/share/bash-completion/completions/tollgate
  tollgate completions fish > ~/.config/fish/completions/tollgate.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Which pages of the manual.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate man
  tollgate man entity create
  tollgate man entity create > tollgate-entity-create.1
  tollgate man --folder ~/.local/share/man/man1

On a terminal the page is shown by man(1); elsewhere its source is printed.")]
pub(crate) struct ManArgs {
    /// The command that the page is about; the whole program if none is named
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    pub(crate) folder: Option<PathBuf>,
}
