use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tollgate_open::StoreUrl;

use crate::settings::{Color, Retention, UsageRetentionArg, parse_store};
use crate::{duration_text, names};

/// The global options.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Store to use: memory, file:PATH, shm:NAME, redis://HOST or dynamodb:TABLE [default: a file in the data directory]
    #[arg(long, global = true, value_name = "STORE", value_parser = parse_store)]
    pub(crate) store: Option<StoreUrl>,

    /// Namespace to work in [default: default]
    #[arg(short = 'N', long, global = true, value_name = "NAME", value_parser = names::namespace)]
    pub(crate) namespace: Option<String>,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Show what would be done, and change nothing
    #[arg(short = 'n', long, global = true)]
    pub(crate) dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,

    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// Name of the user in audit events [default: your login]
    #[arg(long, global = true, value_name = "NAME", value_parser = names::principal, hide_short_help = true)]
    pub(crate) principal: Option<String>,

    /// When to use colors: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub(crate) color: Option<Color>,

    /// Timeout of each call to the store [default: 5s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration_text::parse, hide_short_help = true)]
    pub(crate) store_timeout: Option<Duration>,

    /// How long to keep audit events, or forever [default: 90d]
    #[arg(long, global = true, value_name = "TIME", value_parser = Retention::parse, hide_short_help = true)]
    pub(crate) audit_retention: Option<Retention>,

    /// How long to keep usage, or forever: one time, or three for hours, days and months [default: 90d,400d,3660d]
    #[arg(long, global = true, value_name = "TIME", value_parser = UsageRetentionArg::parse, hide_short_help = true)]
    pub(crate) usage_retention: Option<UsageRetentionArg>,

    /// How long to cache limits where the store does not report changes [default: 60s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration_text::parse, hide_short_help = true)]
    pub(crate) cache_ttl: Option<Duration>,

    /// Config file [default: tollgate/config.toml in the config directory]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) config: Option<PathBuf>,
}
