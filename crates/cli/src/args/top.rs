use std::time::Duration;

use clap::Args;

use super::SetNamespaceArgs;
use crate::duration_text;

/// The arguments of `tollgate top`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate top
  tollgate top --once --max 5
  tollgate top --interval 5s -N tenant-alpha
  tollgate top --in accounts

Press q or Ctrl-C to quit. Without a terminal, with --json, and on systems other
than Unix it prints one snapshot. Waiters are those of all processes that wait
by this command, shown after they have waited for a moment. Idle limit sets are
not shown; `tollgate set list` lists them.")]
pub(crate) struct TopArgs {
    /// Refresh interval, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration_text::parse)]
    pub(crate) interval: Duration,
    /// Print one snapshot
    #[arg(long)]
    pub(crate) once: bool,
    /// Number of rows to show [default: as many as fit]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max: Option<usize>,
    /// The namespace of the limit sets to show.
    #[command(flatten)]
    pub(crate) sets: SetNamespaceArgs,
}
