use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use tollgate_mock_provider::{LimitChange, Outage, Style};

use crate::mock_text;

/// The arguments of `tollgate mock-provider`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(crate) struct MockProviderArgs {
    /// Address to listen on; port 0 is any free port, which is printed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Provider to imitate: openai, azure, anthropic, gemini, bedrock or plain
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) style: Style,
    /// Requests per second [default: unlimited]
    #[arg(long, value_name = "COUNT", value_parser = count())]
    pub(crate) rps: Option<u64>,
    /// Burst size [default: the requests of one second]
    #[arg(long, value_name = "COUNT", requires = "rps", value_parser = count())]
    pub(crate) burst: Option<u64>,
    /// Tokens per minute [default: unlimited]
    #[arg(long, value_name = "COUNT", value_parser = count())]
    pub(crate) tpm: Option<u64>,
    /// Concurrent requests [default: unlimited]
    #[arg(long, value_name = "COUNT", value_parser = count())]
    pub(crate) concurrency: Option<u64>,
    /// Latency of a response: 200ms, or a range as 100ms..2s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = mock_text::latency)]
    pub(crate) latency: RangeInclusive<Duration>,
    /// Change limits at a time after the start: 30s:rps=5,tpm=1000; may be repeated
    #[arg(long, value_name = "CHANGE", value_parser = mock_text::change)]
    pub(crate) change: Vec<LimitChange>,
    /// Let requests fail: 503@10s..20s, hang@5s..6s, every 7th as reset/7; may be repeated
    #[arg(long, value_name = "OUTAGE", value_parser = mock_text::outage)]
    pub(crate) outage: Vec<Outage>,
    /// API key to accept; may be repeated [default: any key]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
    /// Answer as if the spend cap were reached after this many responses
    #[arg(long, value_name = "COUNT")]
    pub(crate) spend_cap: Option<u64>,
    /// Send no Retry-After header
    #[arg(long)]
    pub(crate) no_advice: bool,
    /// Send no rate limit headers
    #[arg(long)]
    pub(crate) no_headers: bool,
    /// Random seed
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    /// End after this many seconds [default: run until Ctrl-C or SIGTERM]
    #[arg(long, value_name = "COUNT")]
    pub(crate) seconds: Option<u32>,
}

/// Parses the amount of a limit.
fn count() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(1..=tollgate::AMOUNT_MAX)
}

const EXAMPLES: &str = "\
Examples:
  tollgate mock-provider --rps 10 --burst 20
  tollgate mock-provider --style anthropic --tpm 50000 --latency 200ms..2s
  tollgate mock-provider --listen 127.0.0.1:8080 --rps 10 --outage 529@30s..40s";

const LONG_EXAMPLES: &str = "\
Examples:
  tollgate mock-provider --rps 10 --burst 20
  tollgate mock-provider --style anthropic --tpm 50000 --latency 200ms..2s
  tollgate mock-provider --listen 127.0.0.1:8080 --rps 10 --outage 529@30s..40s

It serves POST /v1/chat/completions, /v1/responses, /v1/embeddings and
/v1/messages. Text and token usage of a response depend on the request and the
seed only. GET /stats counts requests and responses, GET /healthz is a health
check. Ctrl-C or SIGTERM ends it.

Outages:
  KIND@FROM..TO   all requests in this time after the start
  KIND/N          every Nth request
  KIND is 429, a status from 500 to 599, hang, reset, or midway: a stream that
  breaks

Changes:
  TIME:NAME=COUNT,..   with rps, burst, tpm and concurrency as names

It is for tests: any process that reaches the port can call it, and it calls no
other server.";
