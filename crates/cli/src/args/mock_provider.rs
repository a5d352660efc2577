use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use tollgate_mock_provider::{LimitChange, Outage, Style};

use crate::mock_text;

/// What a provider that is none does.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = LONG_EXAMPLES)]
pub(crate) struct MockProviderArgs {
    /// The address to listen on; port 0 is any that is free, and the answer says which
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Whose manners it has: openai, azure, anthropic, gemini, bedrock or plain
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) style: Style,
    /// Calls a second [default: any number]
    #[arg(long, value_name = "COUNT", value_parser = count())]
    pub(crate) rps: Option<u64>,
    /// Calls at once after a pause [default: those of a second]
    #[arg(long, value_name = "COUNT", requires = "rps", value_parser = count())]
    pub(crate) burst: Option<u64>,
    /// Tokens a minute [default: any number]
    #[arg(long, value_name = "COUNT", value_parser = count())]
    pub(crate) tpm: Option<u64>,
    /// Calls being answered at the same time [default: any number]
    #[arg(long, value_name = "COUNT", value_parser = count())]
    pub(crate) concurrency: Option<u64>,
    /// How long an answer takes: 200ms, or from 100ms to 2s as 100ms..2s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = mock_text::latency)]
    pub(crate) latency: RangeInclusive<Duration>,
    /// Change limits at a time: 30s:rps=5,tpm=1000; may be repeated
    #[arg(long, value_name = "CHANGE", value_parser = mock_text::change)]
    pub(crate) change: Vec<LimitChange>,
    /// Let calls fail: 503@10s..20s, hang@5s..6s, every 7th as reset/7; may be repeated
    #[arg(long, value_name = "OUTAGE", value_parser = mock_text::outage)]
    pub(crate) outage: Vec<Outage>,
    /// A key that may call; may be repeated [default: all may]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
    /// Let the money run out after so many answers
    #[arg(long, value_name = "COUNT")]
    pub(crate) spend_cap: Option<u64>,
    /// Do not say how long to wait
    #[arg(long)]
    pub(crate) no_advice: bool,
    /// Do not say how the limits stand
    #[arg(long)]
    pub(crate) no_headers: bool,
    /// Where the random numbers begin
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    /// End after so many seconds [default: only when told to]
    #[arg(long, value_name = "COUNT")]
    pub(crate) seconds: Option<u32>,
}

/// How much a limit may be.
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

It answers POST /v1/chat/completions, /v1/responses, /v1/embeddings and
/v1/messages with a little text and what that used, which depends on the request
and the seed only. GET /stats tells what came in and what became of it,
GET /healthz whether it is up. Ctrl-C or SIGTERM ends it.

Outages:
  KIND@FROM..TO   all calls in that time after the start
  KIND/N          every Nth call
  KIND is 429, a status from 500 to 599, hang, reset, or midway: a stream that
  breaks

Changes:
  TIME:NAME=COUNT,..   with rps, burst, tpm and concurrency as names

It is for tests: any process that reaches the port may call it, and it calls no
other server.";
