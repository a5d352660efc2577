use clap::Subcommand;

use crate::names;

/// What can be done with namespaces.
#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceCommand {
    /// Register namespaces; those that are there stay as they are
    #[command(after_help = "Example:\n  tollgate namespace register tenant-alpha tenant-beta")]
    Register {
        /// Their names
        #[arg(required = true, value_name = "NAME", value_parser = names::namespace)]
        names: Vec<String>,
    },
    /// List the namespaces in use
    #[command(after_help = "Example:\n  tollgate namespace list --json")]
    List,
    /// Show a namespace and what is in it
    #[command(after_help = "Example:\n  tollgate namespace show tenant-alpha")]
    Show {
        /// Its name
        #[arg(value_name = "NAME", value_parser = names::namespace)]
        name: String,
    },
    /// Delete a namespace; until it is purged it can be recovered by its id
    #[command(after_help = "Example:\n  tollgate namespace delete tenant-alpha")]
    Delete {
        /// Its name
        #[arg(value_name = "NAME", value_parser = names::namespace)]
        name: String,
    },
    /// Take a deleted namespace into use again
    #[command(after_help = "Example:\n  tollgate namespace recover b3JwaGFuLTE")]
    Recover {
        /// Its id, as `tollgate namespace orphans` shows it
        #[arg(value_name = "ID", value_parser = names::namespace_id)]
        id: String,
    },
    /// List the namespaces that were deleted and not yet purged
    #[command(after_help = "Example:\n  tollgate namespace orphans")]
    Orphans,
    /// Remove everything of a deleted namespace, for good
    ///
    /// Asks first, unless --yes is given. A purge that was interrupted goes on when it is asked again.
    #[command(after_help = "Example:\n  tollgate namespace purge b3JwaGFuLTE --yes")]
    Purge {
        /// Its id, as `tollgate namespace orphans` shows it
        #[arg(value_name = "ID", value_parser = names::namespace_id)]
        id: String,
    },
}
