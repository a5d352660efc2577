use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{BatchPatienceArgs, LimitArgs};
use crate::commands::batch::{Api, ApiKey, ResultFormat, dollars, secret_word};
use crate::duration_text;

/// What to do with many requests at once.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Send the requests of a file, and write what comes back to another
    Run(Box<BatchRunArgs>),
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
    /// The form of results; requests are read in any form
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ResultFormat,
    /// Write results in the order of the requests, at the end
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Go on with the results that are there: only what is missing is sent
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume, also send again what had failed: its lines are removed from the results first
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,
    /// Where lines go that are not sent: no requests, duplicate ids, changed since [default: RESULTS.errors.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) errors: Option<PathBuf>,

    /// Where requests go [default: https://api.openai.com/v1, or that of the --api]
    #[arg(long, value_name = "URL", conflicts_with = "accounts")]
    pub(crate) base_url: Option<String>,
    /// What is spoken there
    #[arg(long, value_enum, default_value_t, conflicts_with = "accounts")]
    pub(crate) api: Api,
    /// The variable that has the key [default for the provider's own hosts: OPENAI_API_KEY, or that of the provider]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["accounts", "key_file"])]
    pub(crate) key_env: Option<String>,
    /// The file that has the key
    #[arg(long, value_name = "FILE", conflicts_with = "accounts")]
    pub(crate) key_file: Option<PathBuf>,
    /// The version of the API in the query, for --api azure [default: 2024-10-21]
    #[arg(long, value_name = "VERSION", conflicts_with = "accounts")]
    pub(crate) api_version: Option<String>,
    /// Add a header to each request: 'Name: value'; may be repeated; the value is never shown
    #[arg(long, value_name = "HEADER", value_parser = secret_word)]
    pub(crate) header: Vec<ApiKey>,
    /// Call through this proxy [default: as HTTPS_PROXY and NO_PROXY say]
    #[arg(long, value_name = "URL", value_parser = secret_word)]
    pub(crate) proxy: Option<ApiKey>,
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
    #[command(flatten)]
    pub(crate) patience: BatchPatienceArgs,
    /// Prices of models; those of --accounts come first, those built in last
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Start no call beyond this many dollars, by the prices of the models, which each of them must have
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
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
  tollgate batch run in.jsonl -o out.jsonl --format openai --ordered
  tollgate batch run in.jsonl -o out.jsonl --api azure --base-url URL

Requests, in any of three forms:
  {\"custom_id\": \"a\", \"url\": \"/v1/chat/completions\", \"body\": {\"model\": ...}}
  {\"custom_id\": \"a\", \"params\": {\"model\": ...}}
  {\"model\": ..., \"messages\": ...}

Bodies are sent byte for byte. Results, one for each request that is finished:
  {\"id\": \"a\", \"custom_id\": \"a\", \"status\": \"done\", \"output\": {\"body\": ...}, ...}
  {\"id\": \"b\", \"custom_id\": \"b\", \"status\": \"failed\", \"reason\": ..., ...}

Results with --format openai:
  {\"id\": ..., \"custom_id\": \"a\", \"response\": {\"status_code\": 200, ...}, ...}

Accounts:
  [[account]]
  name = \"blue\"
  base_url = \"https://api.openai.com/v1\"
  key_env = \"OPENAI_API_KEY\"            # or key_file
  limits = [\"rpm:500\", \"tpm:200000\"]    # if they are known
  headers = { \"X-Team\" = \"blue\" }

  [price.\"gpt-4o*\"]                     # dollars for a million tokens
  input = \"2.50\"
  output = \"10\"

A file of --prices has the same prices, and a line date = \"2026-10-01\".

Files:
  RESULTS and the file of errors are written to only if they are new, empty or
  of an earlier run. Any other file is refused, and so are two that are one.

Exit codes:
  0  every line has a good reply
  1  some failed now or before, were left undone, are no requests, have the id
     of another or are not what their results are of; or an account was closed
  2  nothing was sent: the command line, a file, a price or a request that asks
     for a stream is in the way
  4  no call has reached a server; --resume sends everything later";
