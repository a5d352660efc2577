use clap::{Args, Subcommand};

use super::PageArgs;
use crate::names;

/// What can be done with usage.
#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// List what was used in each window
    #[command(after_help = "Examples:
  tollgate usage list --entity key-1 --window day
  tollgate usage list --resource gpt-4 --from 2026-11-01 --until 2026-12-01")]
    List(UsageListArgs),
    /// Add up what was used
    #[command(after_help = "Example:\n  tollgate usage summary --entity key-1 --window hour --from 24h")]
    Summary(UsageSelection),
    /// Draw what was used, one bar for each window
    #[command(after_help = "Examples:
  tollgate usage plot --entity key-1
  tollgate usage plot --resource gpt-4 --window day --limit tpm")]
    Plot(UsagePlotArgs),
}

/// Whose usage, and when.
#[derive(Args, Debug)]
pub(crate) struct UsageSelection {
    /// Only what this entity used
    #[arg(short, long, value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: Option<String>,
    /// Only what was used of this resource
    #[arg(short, long, value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: Option<String>,
    /// How long a window is: hour, day or month (UTC)
    #[arg(short, long, value_name = "WINDOW", default_value = "hour")]
    pub(crate) window: String,
    /// Only windows that begin at this time or later: 2026-11-15, 2026-11-15T14:00:00Z, or 24h for a day ago
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Only windows that begin before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

/// Which rows.
#[derive(Args, Debug)]
pub(crate) struct UsageListArgs {
    /// Whose usage, and when.
    #[command(flatten)]
    pub(crate) selection: UsageSelection,
    /// Which part of the list.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// What to draw.
#[derive(Args, Debug)]
pub(crate) struct UsagePlotArgs {
    /// Whose usage, and when.
    #[command(flatten)]
    pub(crate) selection: UsageSelection,
    /// Only this limit; each that was used if not said
    #[arg(short, long, value_name = "NAME")]
    pub(crate) limit: Option<String>,
}
