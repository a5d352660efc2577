use std::path::PathBuf;

use clap::Args;

/// The arguments of `tollgate aggregate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate aggregate --store dynamodb:limits --archive audit-archive
  tollgate aggregate --store dynamodb:limits --once --json

Aggregation is idempotent: no usage is counted twice, so any number of
aggregators may run, together with the Lambda function or instead of it. Ctrl-C
or SIGTERM shuts it down gracefully after the current batch; the next run
continues from there.")]
pub(crate) struct AggregateArgs {
    /// Begin with the oldest record of the stream [default: continue after the last run]
    #[arg(long, conflicts_with = "latest")]
    pub(crate) from_start: bool,
    /// Begin with records that are written from now on
    #[arg(long)]
    pub(crate) latest: bool,
    /// End when all records of the stream are processed
    #[arg(long)]
    pub(crate) once: bool,
    /// Archive expired audit events in this directory [default: they are deleted]
    #[arg(long, value_name = "DIR")]
    pub(crate) archive: Option<PathBuf>,
}
