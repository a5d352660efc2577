use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::LimitArgs;
use crate::commands::batch::{Api, dollars};
use crate::duration_text;

/// What to do with many requests at once.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Send the requests of a file, and write what comes back to another
    Run(BatchRunArgs),
}

/// Which requests, to whom, and how hard to try.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(crate) struct BatchRunArgs {
    /// The requests: one a line, as JSON; - for stdin
    #[arg(value_name = "REQUESTS")]
    pub(crate) requests: PathBuf,
    /// Where results go, one a line, in the order in which they come
    #[arg(short, long, value_name = "RESULTS")]
    pub(crate) output: PathBuf,
    /// Go on with the results that are there: only what is missing is sent
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume, also send again what had failed: its lines are removed from the results first
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,
    /// Where lines go that are not sent: no requests, duplicate ids, changed since [default: RESULTS.errors.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) errors: Option<PathBuf>,

    /// Where requests go [default: https://api.openai.com/v1, or Anthropic's]
    #[arg(long, value_name = "URL", conflicts_with = "accounts")]
    pub(crate) base_url: Option<String>,
    /// What is spoken there
    #[arg(long, value_enum, default_value_t, conflicts_with = "accounts")]
    pub(crate) api: Api,
    /// The variable that has the key [default for the provider's own hosts: OPENAI_API_KEY or ANTHROPIC_API_KEY]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["accounts", "key_file"])]
    pub(crate) key_env: Option<String>,
    /// The file that has the key
    #[arg(long, value_name = "FILE", conflicts_with = "accounts")]
    pub(crate) key_file: Option<PathBuf>,
    /// Spread over the accounts of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) accounts: Option<PathBuf>,
    /// What the provider is known to allow; what is not known is found out
    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// How many calls may be under way at once
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) workers: u16,
    /// How often a request is tried that fails; being told to wait is no failure
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) attempts: u16,
    /// How long one call may take
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration_text::parse)]
    pub(crate) call_timeout: Duration,
    /// How long everything may take; what is not done by then can be resumed
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) deadline: Option<Duration>,
    /// Start no call beyond this many dollars, by the prices of --accounts, which every model must have
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, requires = "accounts")]
    pub(crate) max_cost: Option<u64>,
    /// Start no call beyond this many tokens
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_tokens: Option<u64>,
    /// Share cooldowns with all who run under this name on the same --store
    #[arg(long, value_name = "NAME")]
    pub(crate) share: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  tollgate batch run requests.jsonl -o results.jsonl
  tollgate batch run requests.jsonl -o results.jsonl --resume
  tollgate batch run requests.jsonl -o results.jsonl --dry-run
  tollgate batch run in.jsonl -o out.jsonl --accounts a.toml --max-cost 5";

const LONG_EXAMPLES: &str = "\
Examples:
  tollgate batch run requests.jsonl -o results.jsonl
  tollgate batch run requests.jsonl -o results.jsonl --resume
  tollgate batch run requests.jsonl -o results.jsonl --dry-run
  tollgate batch run in.jsonl -o out.jsonl --accounts a.toml --max-cost 5

Requests, in any of three forms:
  {\"custom_id\": \"a\", \"url\": \"/v1/chat/completions\", \"body\": {\"model\": ...}}
  {\"custom_id\": \"a\", \"params\": {\"model\": ...}}
  {\"model\": ..., \"messages\": ...}

Bodies are sent byte for byte. Results, one for each request that is finished:
  {\"id\": \"a\", \"custom_id\": \"a\", \"status\": \"done\", \"output\": {\"body\": ...}, ...}
  {\"id\": \"b\", \"custom_id\": \"b\", \"status\": \"failed\", \"reason\": ..., ...}

Accounts:
  [[account]]
  name = \"blue\"
  base_url = \"https://api.openai.com/v1\"
  key_env = \"OPENAI_API_KEY\"            # or key_file
  limits = [\"rpm:500\", \"tpm:200000\"]    # if they are known

  [price.\"gpt-4o*\"]                     # dollars for a million tokens
  input = \"2.50\"
  output = \"10\"

Files:
  RESULTS and the file of errors are written to only if they are new, empty or
  of an earlier run. Any other file is refused, and so are two that are one.

Exit codes:
  0  every line has a good reply
  1  some failed now or before, were left undone, are no requests, have the id
     of another or are not what their results are of
  2  nothing was sent: the command line, a file, a price or a request that asks
     for a stream is in the way
  4  no call has reached a server; --resume sends everything later";
