use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::settings::{Color, Retention, StoreUrl, UsageKept};
use crate::{duration_text, names};

/// What every command understands.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct GlobalArgs {
    /// Where everything is kept: memory, file:PATH, shm:NAME, redis://HOST or dynamodb:TABLE [default: a file in the folder for data]
    #[arg(long, global = true, value_name = "STORE", value_parser = StoreUrl::parse)]
    pub(crate) store: Option<StoreUrl>,

    /// The namespace to work in [default: default]
    #[arg(short = 'N', long, global = true, value_name = "NAME", value_parser = names::namespace)]
    pub(crate) namespace: Option<String>,

    /// Answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say what would be done, and write nothing
    #[arg(short = 'n', long, global = true)]
    pub(crate) dry_run: bool,

    /// Do not ask
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,

    /// Say nothing but errors and what was asked for
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// Who makes changes, for the audit events [default: your login]
    #[arg(long, global = true, value_name = "NAME", value_parser = names::principal, hide_short_help = true)]
    pub(crate) principal: Option<String>,

    /// When to use colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub(crate) color: Option<Color>,

    /// How long the store may take to answer [default: 5s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration_text::parse, hide_short_help = true)]
    pub(crate) store_timeout: Option<Duration>,

    /// How long audit events of changes are kept, or forever [default: 90d]
    #[arg(long, global = true, value_name = "TIME", value_parser = Retention::parse, hide_short_help = true)]
    pub(crate) audit_retention: Option<Retention>,

    /// How long usage is kept, or forever: one time, or three for hours, days and months [default: 90d,400d,3660d]
    #[arg(long, global = true, value_name = "TIME", value_parser = UsageKept::parse, hide_short_help = true)]
    pub(crate) usage_retention: Option<UsageKept>,

    /// How long limits that were read are believed where nothing tells of changes [default: 60s]
    #[arg(long, global = true, value_name = "TIME", value_parser = duration_text::parse, hide_short_help = true)]
    pub(crate) cache_ttl: Option<Duration>,

    /// The config file [default: tollgate/config.toml in the folder for settings]
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) config: Option<PathBuf>,
}
