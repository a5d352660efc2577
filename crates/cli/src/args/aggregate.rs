use std::path::PathBuf;

use clap::Args;

/// Where to begin, and what to do with what has expired.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate aggregate --store dynamodb:limits --archive audit-archive
  tollgate aggregate --store dynamodb:limits --once --json

Usage is counted in the buckets themselves and is never counted twice, so any
number of these may run, beside the Lambda or in its place. Ctrl-C or SIGTERM
ends it after the batch at hand; the next one goes on from there.")]
pub(crate) struct AggregateArgs {
    /// Begin with the oldest record that the stream has [default: after what was done last]
    #[arg(long, conflicts_with = "latest")]
    pub(crate) from_start: bool,
    /// Begin with what is written from now on
    #[arg(long)]
    pub(crate) latest: bool,
    /// End when everything is done that is there
    #[arg(long)]
    pub(crate) once: bool,
    /// Archive audit events that expire in this folder [default: they are gone]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) archive: Option<PathBuf>,
}
