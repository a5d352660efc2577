use clap::Subcommand;

use super::LimitArgs;
use crate::names;

/// The commands for resources.
#[derive(Debug, Subcommand)]
pub(crate) enum ResourceCommand {
    /// Set the limits of all entities that use a resource, replacing the stored ones
    #[command(after_help = "Example:\n  tollgate resource set-defaults gpt-4 -l rpm:500 -l tpm:50000")]
    SetDefaults {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
        /// The limits.
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Show the stored limits of a resource
    #[command(after_help = "Example:\n  tollgate resource get-defaults gpt-4")]
    GetDefaults {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
    /// Delete the stored limits of a resource
    #[command(after_help = "Example:\n  tollgate resource delete-defaults gpt-4")]
    DeleteDefaults {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
    /// Show the total capacity of a limit over all entities that use a resource, and how much is left
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
    /// Set whether calls to a resource are also charged to parents, overriding the entities
    #[command(after_help = "Example:\n  tollgate resource set-cascade budget false")]
    SetCascade {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
        /// Whether calls are also charged to parents
        #[arg(value_name = "BOOL", action = clap::ArgAction::Set)]
        cascade: bool,
    },
    /// Undo set-cascade, so that each entity's own setting decides
    #[command(after_help = "Example:\n  tollgate resource unset-cascade budget")]
    UnsetCascade {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = names::resource)]
        resource: String,
    },
    /// Deny every call to a resource
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
