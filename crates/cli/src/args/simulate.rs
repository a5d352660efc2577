use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::LimitArgs;
use crate::duration_text;
use crate::percent_text::Percent;

/// The arguments of `tollgate simulate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// Log of calls, one JSON object a line; - for stdin
    #[arg(value_name = "LOG")]
    pub(crate) log: PathBuf,
    /// Replay against the limits of this file [default: the stored limits]
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    pub(crate) limits: Option<PathBuf>,
    /// Replay against these limits, for all entities and resources
    #[command(flatten)]
    pub(crate) all_entities: LimitArgs,
    /// Let callers wait instead of being denied, and report how long
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long a caller waits before it gives up
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = duration_text::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Exit with 1 if a larger share of the calls is denied, such as 1%
    #[arg(long, value_name = "PERCENT", value_parser = Percent::parse)]
    pub(crate) max_denied: Option<Percent>,
    /// Number of entities and waits to list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) max: usize,
}

const EXAMPLES: &str = "\
Examples:
  tollgate simulate calls.jsonl --limits limits.toml
  tollgate simulate calls.jsonl -l rpm:100 -l tpm:20000 --wait --timeout 30s
  tollgate simulate calls.jsonl --limits limits.toml --max-denied 1%   # in CI";

const LONG_EXAMPLES: &str = "\
Examples:
  tollgate simulate calls.jsonl --limits limits.toml
  tollgate simulate calls.jsonl -l rpm:100 -l tpm:20000 --wait --timeout 30s
  tollgate simulate calls.jsonl --limits limits.toml --max-denied 1%   # in CI

The log:
  {\"time\": \"2026-11-15T14:00:00Z\", \"entity\": \"key-1\", \"resource\": \"gpt-4\",
   \"demand\": {\"rpm\": 1, \"tpm\": 1500}, \"used\": {\"tpm\": 1180}, \"duration_ms\": 900}

  Each call is one line. A time may also be a number: seconds, milliseconds or
  microseconds since 1970. The default of used is the demand, of duration_ms 0.
  Names in a demand that no limit has are skipped. A line with an earlier time
  than the line before it counts as of that line's time.";
