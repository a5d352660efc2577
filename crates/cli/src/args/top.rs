use std::time::Duration;

use clap::Args;

use super::SetPlaceArgs;
use crate::duration_text;

/// How to watch a namespace.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate top
  tollgate top --once --max 5
  tollgate top --interval 5s -N tenant-alpha
  tollgate top --in accounts

Ends with q or Ctrl-C. Without a terminal, with --json, and on systems other
than Unix it looks once. Who waits is shown of all processes that wait by this
command, as soon as they have waited for a moment. Limit sets that are idle are
not shown; `tollgate set list` has them.")]
pub(crate) struct TopArgs {
    /// How often to look, 100ms at least
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration_text::parse)]
    pub(crate) interval: Duration,
    /// Look once
    #[arg(long)]
    pub(crate) once: bool,
    /// How many rows to show; as many as there is room for if not said
    #[arg(long, value_name = "COUNT")]
    pub(crate) max: Option<usize>,
    /// Which limit sets to show.
    #[command(flatten)]
    pub(crate) sets: SetPlaceArgs,
}
