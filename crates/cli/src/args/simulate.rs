use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::LimitArgs;
use crate::duration_text;

/// A log of calls, and what it is to be replayed against.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// The log: one call a line, as JSON; - for stdin
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Replay against the limits of this file; against those that are stored if not said
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    pub(crate) limits: Option<PathBuf>,
    /// Replay against these limits, for all entities and resources
    #[command(flatten)]
    pub(crate) all_entities: LimitArgs,
    /// Let callers wait their turn instead of being refused, and say how long
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long a caller would wait before giving up
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = duration_text::parse)]
    pub(crate) timeout: Option<Duration>,
    /// How many entities and waits to list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) max: usize,
}

const EXAMPLES: &str = "\
Examples:
  tollgate simulate calls.jsonl --limits limits.toml
  tollgate simulate calls.jsonl -l rpm:100 -l tpm:20000 --wait --timeout 30s";

const LONG_EXAMPLES: &str = "\
Examples:
  tollgate simulate calls.jsonl --limits limits.toml
  tollgate simulate calls.jsonl -l rpm:100 -l tpm:20000 --wait --timeout 30s

The log:
  {\"time\": \"2026-11-15T14:00:00Z\", \"entity\": \"key-1\", \"resource\": \"gpt-4\",
   \"demand\": {\"rpm\": 1, \"tpm\": 1500}, \"used\": {\"tpm\": 1180}, \"duration_ms\": 900}

  All of it in one line. A time may also be a number: seconds, milliseconds or
  microseconds since 1970. What was used and how long it took may be left out:
  then it is what was asked, and no time at all. What is asked of limits that
  are not there is left out. A line that comes before its time counts as of the
  line before it.";
