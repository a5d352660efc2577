use std::time::Duration;

use clap::{Args, ValueEnum};
use tollgate::Priority;

use crate::duration_text;

/// Whether a call waits, how long, and with which priority.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WaitArgs {
    /// Wait until the limits admit the call, instead of being denied
    #[arg(short, long)]
    wait: bool,
    /// Wait at most this long; denied at once if that cannot be enough
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Priority over other waiters: interactive, normal or batch
    #[arg(long, value_name = "PRIORITY", value_enum, default_value = "normal", hide_possible_values = true)]
    priority: PriorityArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PriorityArg {
    Interactive,
    Normal,
    Batch,
}

impl WaitArgs {
    /// Returns whether to wait at all. A timeout implies it.
    pub(crate) fn waits(&self) -> bool {
        self.wait || self.timeout.is_some()
    }

    /// Converts the priority for the limiter.
    pub(crate) fn priority(&self) -> Priority {
        match self.priority {
            PriorityArg::Interactive => Priority::Interactive,
            PriorityArg::Normal => Priority::Normal,
            PriorityArg::Batch => Priority::Batch,
        }
    }
}
