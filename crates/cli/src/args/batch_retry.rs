use std::time::Duration;

use clap::Args;

use crate::duration_text;

/// How a batch behaves when the provider throttles it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BatchRetryArgs {
    /// Time limit of one request with all its calls and waits [default: none]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) request_deadline: Option<Duration>,
    /// Total time that a request may be throttled before it fails [default: 1d]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) throttle_budget: Option<Duration>,
    /// Cooldown after a 429 without Retry-After; doubles until a call succeeds [default: learned]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) cooldown: Option<Duration>,
    /// Longest cooldown, even if the provider asks for more [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) cooldown_max: Option<Duration>,
    /// How long all calls may fail before the account is closed and the rest is left for --resume [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) outage_max: Option<Duration>,
    /// Ramp concurrent calls from one to --workers over this time, at the start and after each cooldown [default: off]
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) slow_start: Option<Duration>,
}
