use std::time::Duration;

use clap::Args;

use crate::duration_text;

/// How a batch behaves when the provider throttles it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BatchPatienceArgs {
    /// How long one request may take with all its calls and waits [default: no bound]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) request_deadline: Option<Duration>,
    /// How long a request may be throttled in all before it fails [default: 1d]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) throttle_budget: Option<Duration>,
    /// How long to pause after a 429 that says nothing about it; doubles while none passes [default: learned]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) cooldown: Option<Duration>,
    /// The longest pause, whatever the provider says [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) cooldown_max: Option<Duration>,
    /// How long every call may fail before the account is closed and the rest is left for --resume [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) outage_max: Option<Duration>,
    /// Let calls in flight grow from one to --workers over this time, at the start and after each pause [default: off]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) slow_start: Option<Duration>,
}
