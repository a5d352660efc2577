use clap::Subcommand;

use crate::names;

/// The commands for namespaces.
#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceCommand {
    /// Register namespaces; existing ones stay unchanged
    #[command(after_help = "Example:\n  tollgate namespace register tenant-alpha tenant-beta")]
    Register {
        /// Names of the namespaces
        #[arg(required = true, value_name = "NAME", value_parser = names::namespace)]
        names: Vec<String>,
    },
    /// List namespaces
    #[command(after_help = "Example:\n  tollgate namespace list --json")]
    List,
    /// Show a namespace and what it contains
    #[command(after_help = "Example:\n  tollgate namespace show tenant-alpha")]
    Show {
        /// Name of the namespace
        #[arg(value_name = "NAME", value_parser = names::namespace)]
        name: String,
    },
    /// Delete a namespace; it can be recovered by its id until it is purged
    #[command(after_help = "Example:\n  tollgate namespace delete tenant-alpha")]
    Delete {
        /// Name of the namespace
        #[arg(value_name = "NAME", value_parser = names::namespace)]
        name: String,
    },
    /// Recover a deleted namespace
    #[command(after_help = "Example:\n  tollgate namespace recover b3JwaGFuLTE")]
    Recover {
        /// Id of the namespace, as `tollgate namespace orphans` shows it
        #[arg(value_name = "ID", value_parser = names::namespace_id)]
        id: String,
    },
    /// List deleted namespaces that are not yet purged
    #[command(after_help = "Example:\n  tollgate namespace orphans")]
    Orphans,
    /// Purge a deleted namespace: remove all its data permanently
    ///
    /// Asks for confirmation, unless --yes is given. An interrupted purge continues when the command is repeated.
    #[command(after_help = "Example:\n  tollgate namespace purge b3JwaGFuLTE --yes")]
    Purge {
        /// Id of the namespace, as `tollgate namespace orphans` shows it
        #[arg(value_name = "ID", value_parser = names::namespace_id)]
        id: String,
    },
}
