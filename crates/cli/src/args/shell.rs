use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

/// Help for `tollgate reference`.
pub(super) const REFERENCE: &str = "Example:\n  tollgate reference > docs/reference/cli.md";

/// The commands for settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show all settings
    #[command(after_help = "Example:\n  tollgate config show --sources")]
    Show {
        /// Also show where each value comes from
        #[arg(long)]
        sources: bool,
    },
}

/// The arguments of `tollgate completions`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate completions bash > \\
    ~/.local/share/bash-completion/completions/tollgate
  tollgate completions zsh > ~/.tollgate.zsh   # source it after compinit
  tollgate completions fish > ~/.config/fish/completions/tollgate.fish

The directory must exist. The script asks this program for each word: entities,
resources, limits, namespaces and sets are completed from the store that the
settings and the command line name. Print it again after an upgrade.")]
pub(crate) struct CompletionsArgs {
    /// Shell to complete in
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// The arguments of `tollgate man`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate man
  tollgate man entity create
  tollgate man entity create > tollgate-entity-create.1
  tollgate man --folder ~/.local/share/man/man1

On a terminal man(1) shows the page; elsewhere its source is printed.")]
pub(crate) struct ManArgs {
    /// Command to show the page of [default: the whole program]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) folder: Option<PathBuf>,
}
