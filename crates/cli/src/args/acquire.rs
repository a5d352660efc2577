use std::time::Duration;

use clap::Args;

use super::{AlsoArgs, CallArgs, PatienceArgs};
use crate::duration_text;

/// What to take.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate acquire user-1 gpt-4 rpm=1 tpm=500
  tollgate acquire user-1 gpt-4 rpm=1 --timeout 30s --also embeddings rpm=2
  ticket=$(tollgate acquire user-1 gpt-4 tpm=500 --wait) && \\
    tollgate settle \"$ticket\" tpm=700

The ticket on stdout is what was taken. It is charged until it is settled; of
concurrency it is free again after --ttl. It is sealed, so that one that was
changed is refused, and expires after a day, or after --ttl if that is longer.
The exit code is 3 if a limit refuses.")]
pub(crate) struct AcquireArgs {
    /// Who wants how much of what.
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// What else is taken with it.
    #[command(flatten)]
    pub(crate) also: AlsoArgs,
    /// How patiently.
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
    /// After this, concurrency that was taken is free again unless the ticket is settled
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration_text::parse)]
    pub(crate) ttl: Duration,
}
