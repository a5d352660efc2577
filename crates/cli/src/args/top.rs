use std::time::Duration;

use clap::{Args, ValueEnum};

use super::SetNamespaceArgs;
use crate::duration_text;

/// The arguments of `tollgate top`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate top
  tollgate top --sort held --filter gpt-4
  tollgate top --once --max 5
  tollgate top --interval 5s -N tenant-alpha --in accounts

Press ? for the keys, and q or Ctrl-C to quit. Without a terminal, with --json,
and on systems other than Unix it prints one snapshot. Waiters are those of all
processes that wait by this command, shown after they have waited for a moment.
Idle limit sets are not shown; `tollgate set list` lists them.")]
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
    /// Column to sort by: calls, used, left or held
    #[arg(long, value_name = "COLUMN", value_enum, default_value = "calls", hide_possible_values = true)]
    pub(crate) sort: SortBy,
    /// Show only entities, resources and sets whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// The namespace of the limit sets to show.
    #[command(flatten)]
    pub(crate) sets: SetNamespaceArgs,
}

/// The column that rows are sorted by. The greatest value comes first; of what is left, the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// Calls since the last snapshot, then in this hour.
    #[default]
    Calls,
    /// The share in use of the limit of which the smallest share is left.
    Used,
    /// The amount left of that limit.
    Left,
    /// What is held of concurrency limits.
    Held,
}
