use clap::Subcommand;

/// The commands for the secret that seals tickets.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Replace the secret that seals tickets
    ///
    /// Tickets that were sealed with the previous secret stay valid until the next rotation; older ones are refused. Running
    /// processes use the previous secret for up to a minute, so rotate twice within a minute only to invalidate all tickets.
    #[command(
        name = "rotate-secret",
        after_help = "Examples:\n  tollgate token rotate-secret\n  tollgate token rotate-secret -N tenant-alpha --json"
    )]
    RotateSecret,
}
