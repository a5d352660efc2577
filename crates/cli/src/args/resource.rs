use clap::Subcommand;

use super::LimitArgs;
use crate::names;

/// What can be done with resources.
#[derive(Debug, Subcommand)]
pub(crate) enum ResourceCommand {
    /// Store limits for all entities that use a resource, in place of those that are there
    #[command(after_help = "Example:\n  tollgate resource set-defaults gpt-4 -l rpm:500 -l tpm:50000")]
    SetDefaults {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
        /// The limits.
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Show the limits that are stored for a resource
    #[command(after_help = "Example:\n  tollgate resource get-defaults gpt-4")]
    GetDefaults {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
    /// Delete the limits that are stored for a resource
    #[command(after_help = "Example:\n  tollgate resource delete-defaults gpt-4")]
    DeleteDefaults {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
    /// Show how much of a limit all entities that use a resource have together, and how much is left
    #[command(after_help = "Example:\n  tollgate resource capacity gpt-4 tpm")]
    Capacity {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
        /// The limit
        #[arg(value_name = "LIMIT", value_parser = names::limit)]
        limit: String,
    },
    /// List the resources that have limits
    #[command(after_help = "Example:\n  tollgate resource list")]
    List,
    /// Say whether calls to a resource are charged to parents, too, whatever the entities themselves say
    #[command(after_help = "Example:\n  tollgate resource set-cascade budget false")]
    SetCascade {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
        /// Whether they are
        #[arg(value_name = "BOOL", action = clap::ArgAction::Set)]
        cascade: bool,
    },
    /// Take that back, so that each entity decides for itself
    #[command(after_help = "Example:\n  tollgate resource unset-cascade budget")]
    UnsetCascade {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
    /// Refuse every call to a resource
    #[command(after_help = "Example:\n  tollgate resource disable gpt-4")]
    Disable {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
    /// Admit calls to a resource again
    #[command(after_help = "Example:\n  tollgate resource enable gpt-4")]
    Enable {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
}
