use std::time::Duration;

use clap::Args;

use super::{AlsoArgs, CallArgs, WaitArgs};
use crate::duration_text;

/// The arguments of `tollgate acquire`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate acquire user-1 gpt-4 rpm=1 tpm=500
  tollgate acquire user-1 gpt-4 rpm=1 --timeout 30s --also embeddings rpm=2
  ticket=$(tollgate acquire user-1 gpt-4 tpm=500 --wait) && \\
    tollgate settle \"$ticket\" tpm=700

The ticket on stdout stands for what was acquired. All of it stays charged until
the ticket is settled; concurrency is released after --ttl. The ticket is
sealed, so that a changed one is refused, and it expires after a day, or after
--ttl if that is longer. The exit code is 3 if a limit denies the call.")]
pub(crate) struct AcquireArgs {
    /// The entity, the resource and the amounts.
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// Other resources to acquire together with it.
    #[command(flatten)]
    pub(crate) also: AlsoArgs,
    /// Whether to wait, and how long.
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    /// Release acquired concurrency after this time, unless the ticket is settled first
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration_text::parse)]
    pub(crate) ttl: Duration,
}
