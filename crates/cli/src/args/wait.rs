use std::time::Duration;

use clap::{Args, ValueEnum};
use tollgate::Priority;

use crate::duration_text;

/// How patiently.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct PatienceArgs {
    /// Wait for our turn, instead of being refused
    #[arg(short, long)]
    wait: bool,
    /// Wait no longer than this; if that cannot be enough, be refused at once
    #[arg(long, value_name = "TIME", value_parser = duration_text::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Who goes first among those who wait in one process: interactive, normal or batch
    #[arg(long, value_name = "PRIORITY", value_enum, default_value = "normal", hide_possible_values = true)]
    priority: PriorityArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PriorityArg {
    Interactive,
    Normal,
    Batch,
}

impl PatienceArgs {
    /// Whether to wait at all. Who says how long means to.
    pub(crate) fn waits(&self) -> bool {
        self.wait || self.timeout.is_some()
    }

    /// The same for the limiter.
    pub(crate) fn priority(&self) -> Priority {
        match self.priority {
            PriorityArg::Interactive => Priority::Interactive,
            PriorityArg::Normal => Priority::Normal,
            PriorityArg::Batch => Priority::Batch,
        }
    }
}
