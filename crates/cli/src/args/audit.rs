use clap::{Args, Subcommand};

use super::PageArgs;
use crate::names;

/// The commands for audit events.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List changes, newest first
    #[command(after_help = "Examples:
  tollgate audit list --entity key-1
  tollgate audit list --system --oldest-first --max 20")]
    List(AuditListArgs),
}

/// The arguments of `tollgate audit list`.
#[derive(Args, Debug)]
pub(crate) struct AuditListArgs {
    /// Only changes to this entity
    #[arg(short, long, value_name = "ENTITY", value_parser = names::entity, conflicts_with_all = ["resource", "system"])]
    pub(crate) entity: Option<String>,
    /// Only changes to this resource
    #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource, conflicts_with = "system")]
    pub(crate) resource: Option<String>,
    /// Only changes to the default limits of all entities and resources
    #[arg(long)]
    pub(crate) system: bool,
    /// List the oldest first
    #[arg(long)]
    pub(crate) oldest_first: bool,
    /// The page of the list.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
