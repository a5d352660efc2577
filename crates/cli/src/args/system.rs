use clap::{Args, Subcommand};
use tollgate::OnUnavailable;

use super::LimitArgs;

/// What can be done with the limits for all entities and resources.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemCommand {
    /// Store limits for all entities and resources, in place of those that are there
    #[command(
        name = "set-defaults",
        after_help = "Examples:
  tollgate system set-defaults -l rpm:1000 -l tpm:100000
  tollgate system set-defaults --on-unavailable allow"
    )]
    Set(SystemSetArgs),
    /// Show the limits that are stored for all entities and resources
    #[command(name = "get-defaults", after_help = "Example:\n  tollgate system get-defaults")]
    Get,
    /// Delete the limits that are stored for all entities and resources
    #[command(name = "delete-defaults", after_help = "Example:\n  tollgate system delete-defaults")]
    Delete,
}

/// What is to hold for all entities and resources.
#[derive(Args, Debug)]
pub(crate) struct SystemSetArgs {
    /// The limits.
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// What to do when the store does not answer: block, allow or local
    ///
    /// block refuses, allow admits, local admits a share of the limits that was last heard of. Without -l, the limits that
    /// are stored stay.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) on_unavailable: Option<OnUnavailable>,
}

fn policy(text: &str) -> Result<OnUnavailable, String> {
    OnUnavailable::from_name(text).ok_or_else(|| "valid are block, allow and local".into())
}
