use clap::Subcommand;

/// What can be done with what seals tickets.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Replace the secret that tickets are sealed with
    ///
    /// Tickets that were sealed with the one before stay valid until the next rotation; older ones are refused. Processes
    /// that run go on sealing with the old secret for up to a minute, so rotate twice within a minute only to refuse all
    /// tickets that are out.
    #[command(
        name = "rotate-secret",
        after_help = "Examples:\n  tollgate token rotate-secret\n  tollgate token rotate-secret -N tenant-alpha --json"
    )]
    RotateSecret,
}
