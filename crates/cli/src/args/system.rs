use clap::{Args, Subcommand};
use tollgate::OnUnavailable;

use super::LimitArgs;

/// The commands for the default limits of all entities and resources.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemCommand {
    /// Set the default limits of all entities and resources, replacing the stored ones
    #[command(
        name = "set-defaults",
        after_help = "Examples:
  tollgate system set-defaults -l rpm:1000 -l tpm:100000
  tollgate system set-defaults --on-unavailable allow"
    )]
    Set(SystemSetArgs),
    /// Show the stored default limits of all entities and resources
    #[command(name = "get-defaults", after_help = "Example:\n  tollgate system get-defaults")]
    Get,
    /// Delete the stored default limits of all entities and resources
    #[command(name = "delete-defaults", after_help = "Example:\n  tollgate system delete-defaults")]
    Delete,
}

/// The arguments of `tollgate system set-defaults`.
#[derive(Args, Debug)]
pub(crate) struct SystemSetArgs {
    /// The limits.
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Policy while the store is unavailable: block, allow or local
    ///
    /// block denies every call, allow admits every call, local admits calls within a share of the last known limits. Without
    /// -l, the stored limits stay unchanged.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) on_unavailable: Option<OnUnavailable>,
}

fn policy(text: &str) -> Result<OnUnavailable, String> {
    OnUnavailable::from_name(text).ok_or_else(|| "valid are block, allow and local".into())
}
