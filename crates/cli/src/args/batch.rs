use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::{BatchRetryArgs, LimitArgs};
use crate::commands::batch::{Api, ApiKey, ResultFormat, dollars, secret_word};
use crate::duration_text;

/// The commands for batches of requests.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Send the requests of a file, and write the results to another file
    Run(Box<BatchRunArgs>),
}

/// The arguments of `tollgate batch run`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(crate) struct BatchRunArgs {
    /// File of requests, one JSON object a line; - for stdin
    #[arg(value_name = "REQUESTS")]
    pub(crate) requests: PathBuf,
    /// File for results, one a line, in the order of completion
    #[arg(short, long, value_name = "RESULTS")]
    pub(crate) output: PathBuf,
    /// Format of results; requests are read in any format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ResultFormat,
    /// Write results in the order of the requests, at the end
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Continue an earlier run: send only requests without a result
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume, also send failed requests again: their lines are removed from the results first
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,
    /// File for lines that are not sent: invalid requests, duplicate ids, changed requests [default: RESULTS.errors.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) errors: Option<PathBuf>,

    /// Base URL of the provider [default: https://api.openai.com/v1, or that of the --api]
    #[arg(long, value_name = "URL", conflicts_with = "accounts")]
    pub(crate) base_url: Option<String>,
    /// API of the provider
    #[arg(long, value_enum, default_value_t, conflicts_with = "accounts")]
    pub(crate) api: Api,
    /// Environment variable with the API key [default for the provider's own hosts: OPENAI_API_KEY, or that of the provider]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["accounts", "key_file"])]
    pub(crate) key_env: Option<String>,
    /// File with the API key
    #[arg(long, value_name = "FILE", conflicts_with = "accounts")]
    pub(crate) key_file: Option<PathBuf>,
    /// API version in the query, for --api azure [default: 2024-10-21]
    #[arg(long, value_name = "VERSION", conflicts_with = "accounts")]
    pub(crate) api_version: Option<String>,
    /// Add a header to each request: 'Name: value'; may be repeated; the value is never shown
    #[arg(long, value_name = "HEADER", value_parser = secret_word)]
    pub(crate) header: Vec<ApiKey>,
    /// HTTP proxy to use [default: HTTPS_PROXY and NO_PROXY]
    #[arg(long, value_name = "URL", value_parser = secret_word)]
    pub(crate) proxy: Option<ApiKey>,
    /// File of accounts to spread requests over
    #[arg(long, value_name = "FILE")]
    pub(crate) accounts: Option<PathBuf>,
    /// Known rate limits of the provider; unknown ones are learned
    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Maximum number of concurrent calls
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) workers: u16,
    /// Maximum attempts per request; throttled calls (429) do not count
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) attempts: u16,
    /// Timeout of one call
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration_text::parse)]
    pub(crate) call_timeout: Duration,
    /// Time limit of the whole batch; the rest can be resumed
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) deadline: Option<Duration>,
    #[command(flatten)]
    pub(crate) retry: BatchRetryArgs,
    /// File of model prices; prices in --accounts come first, built-in prices last
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Budget in dollars: start no call that could exceed it; every model must have a price
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) max_cost: Option<u64>,
    /// Budget in tokens: start no call that could exceed it
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_tokens: Option<u64>,
    /// Share cooldowns with every batch of this name on the same --store
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

Requests, in any of three formats:
  {\"custom_id\": \"a\", \"url\": \"/v1/chat/completions\", \"body\": {\"model\": ...}}
  {\"custom_id\": \"a\", \"params\": {\"model\": ...}}
  {\"model\": ..., \"messages\": ...}

Bodies are sent unchanged. Results, one for each finished request:
  {\"id\": \"a\", \"custom_id\": \"a\", \"status\": \"done\", \"output\": {\"body\": ...}, ...}
  {\"id\": \"b\", \"custom_id\": \"b\", \"status\": \"failed\", \"reason\": ..., ...}

Results with --format openai:
  {\"id\": ..., \"custom_id\": \"a\", \"response\": {\"status_code\": 200, ...}, ...}

Accounts:
  [[account]]
  name = \"blue\"
  base_url = \"https://api.openai.com/v1\"
  key_env = \"OPENAI_API_KEY\"            # or key_file
  limits = [\"rpm:500\", \"tpm:200000\"]    # if known
  headers = { \"X-Team\" = \"blue\" }

  [price.\"gpt-4o*\"]                     # dollars for a million tokens
  input = \"2.50\"
  output = \"10\"

A --prices file has the same price sections, and a line date = \"2026-10-01\".

Files:
  RESULTS and the file of errors must be new, empty or of an earlier run, and
  must not be the same file. Anything else is refused.

Exit codes:
  0  every request succeeded
  1  some requests failed, remain, are invalid, have a duplicate id or were
     changed since their result; or an account was closed
  2  nothing was sent: the command line, a file or a price is invalid, or a
     request asks for a stream
  4  no call reached a server; --resume sends everything later";
