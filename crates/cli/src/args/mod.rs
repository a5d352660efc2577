//! The command line: commands, arguments and their help.
//!
//! Help, man pages and reference are all generated from here. Names are validated as they are parsed, so that a bad one is
//! refused before anything is opened.

#[cfg(feature = "dynamodb")]
mod aggregate;
mod audit;
#[cfg(feature = "batch")]
mod batch;
#[cfg(feature = "batch")]
mod batch_retry;
mod call;
mod entity;
mod extra_resources;
mod global;
mod groups;
mod limit;
#[cfg(feature = "local")]
mod local;
#[cfg(feature = "mock-provider")]
mod mock_provider;
mod namespace;
mod page;
mod resource;
mod shell;
mod store;
mod system;
mod token;
mod usage;
mod wait;

// Commands that acquire from buckets. Each has a file here and one in `commands`.
mod acquire;
#[cfg(feature = "mock-provider")]
mod demo;
mod explain;
mod limits;
mod peek;
mod run;
mod set;
mod settle;
mod simulate;
mod top;

use clap::{Parser, Subcommand};

use crate::output::style;

pub(crate) use acquire::AcquireArgs;
#[cfg(feature = "dynamodb")]
pub(crate) use aggregate::AggregateArgs;
pub(crate) use audit::{AuditCommand, AuditListArgs};
#[cfg(feature = "batch")]
pub(crate) use batch::{BatchCommand, BatchRunArgs};
#[cfg(feature = "batch")]
pub(crate) use batch_retry::BatchRetryArgs;
pub(crate) use call::CallArgs;
#[cfg(feature = "mock-provider")]
pub(crate) use demo::DemoArgs;
pub(crate) use entity::{
    EntityCommand, EntityCreateArgs, EntityLimitsArgs, EntityListArgs, EntityResetArgs, EntitySetLimitsArgs,
    EntitySetParentArgs, EntityTopUpArgs,
};
pub(crate) use explain::ExplainArgs;
pub(crate) use extra_resources::AlsoArgs;
pub(crate) use global::GlobalArgs;
pub(crate) use groups::grouped_command;
pub(crate) use limit::LimitArgs;
pub(crate) use limits::LimitsCommand;
#[cfg(feature = "local")]
pub(crate) use local::{LocalCommand, LocalUpArgs};
#[cfg(feature = "mock-provider")]
pub(crate) use mock_provider::MockProviderArgs;
pub(crate) use namespace::NamespaceCommand;
pub(crate) use page::PageArgs;
pub(crate) use peek::PeekArgs;
pub(crate) use resource::ResourceCommand;
pub(crate) use run::RunArgs;
pub(crate) use set::{SetArgs, SetCommand, SetNamespaceArgs};
pub(crate) use settle::SettleArgs;
pub(crate) use shell::{CompletionsArgs, ConfigCommand, ManArgs};
pub(crate) use simulate::SimulateArgs;
pub(crate) use store::UpgradeArgs;
pub(crate) use system::{SystemCommand, SystemSetArgs};
pub(crate) use token::TokenCommand;
pub(crate) use top::{SortBy, TopArgs};
pub(crate) use usage::{UsageCommand, UsageListArgs, UsagePlotArgs, UsageSelection};
pub(crate) use wait::WaitArgs;

/// The largest width of help, which is also that of the reference.
pub(crate) const HELP_WIDTH: usize = 80;

/// Rate limits, budgets and concurrency limits for expensive APIs
///
/// Limits on requests, tokens, money and concurrency, shared by threads, processes and hosts. They are stored in a file that
/// needs no server, in shared memory, in Redis or in a DynamoDB table.
/// Data is written to stdout, notices, warnings and errors to stderr.
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    max_term_width = HELP_WIDTH,
    styles = style::OF_CLAP,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = EXAMPLES,
    after_long_help = LONG_EXAMPLES
)]
pub(crate) struct Cli {
    /// The global options.
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tollgate system set-defaults -l rpm:60 -l slots:3/at-once
  tollgate run user-1 jobs --wait -- curl https://api.example.com
  tollgate usage plot --entity user-1";

const LONG_EXAMPLES: &str = "\
Examples:
  tollgate system set-defaults -l rpm:60 -l slots:3/at-once
  tollgate run user-1 jobs --wait -- curl https://api.example.com
  tollgate usage plot --entity user-1

Exit codes:
  0  success                       3  denied by a limit
  1  failure                       4  the store is unavailable
  2  the command line is invalid   5  a setting or limits file is invalid

Settings:
  A flag wins over environment variables (TOLLGATE_STORE, TOLLGATE_NAMESPACE,
  TOLLGATE_PRINCIPAL, TOLLGATE_COLOR, TOLLGATE_STORE_TIMEOUT,
  TOLLGATE_AUDIT_RETENTION, TOLLGATE_USAGE_RETENTION, TOLLGATE_CACHE_TTL), these
  over the config file (--config, TOLLGATE_CONFIG, or tollgate/config.toml in
  $XDG_CONFIG_HOME), and that over the default. `tollgate config show --sources`
  shows where each value comes from.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Manage namespaces (isolated tenants)
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Manage entities: users, keys, projects
    #[command(subcommand)]
    Entity(EntityCommand),
    /// Manage resources: models, endpoints
    #[command(subcommand)]
    Resource(ResourceCommand),
    /// Manage the default limits of all entities and resources
    #[command(subcommand)]
    System(SystemCommand),
    /// Show the audit log of changes
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show usage by hour, day and month
    #[command(subcommand)]
    Usage(UsageCommand),
    /// Manage the secret that seals tickets
    #[command(subcommand)]
    Token(TokenCommand),

    /// Acquire amounts of an entity's limits, and print a ticket
    Acquire(AcquireArgs),
    /// Settle a ticket with what the call really used
    Settle(SettleArgs),
    /// Show how much of an entity's limits is left
    Peek(PeekArgs),
    /// Explain which limit would deny a call, and for how long
    Explain(ExplainArgs),
    /// Replay a log of calls against other limits
    Simulate(SimulateArgs),
    /// Manage limits in a file: plan, apply, diff, export
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Manage the limit sets that programs open in the store
    #[command(subcommand)]
    Set(SetCommand),
    /// Run a command when its rate limits admit it
    Run(RunArgs),
    /// Watch the busiest entities
    Top(TopArgs),
    /// Watch a small simulated fleet
    #[cfg(feature = "mock-provider")]
    Demo(DemoArgs),
    /// Send a file of requests to LLM providers, as fast as they allow
    #[cfg(feature = "batch")]
    #[command(subcommand)]
    Batch(BatchCommand),

    /// Aggregate usage from a DynamoDB stream, archive audit events
    #[cfg(feature = "dynamodb")]
    Aggregate(AggregateArgs),
    /// Run DynamoDB locally, without AWS, for development
    #[cfg(feature = "local")]
    #[command(subcommand)]
    Local(LocalCommand),

    /// Run a mock LLM provider, for tests
    #[cfg(feature = "mock-provider")]
    MockProvider(MockProviderArgs),

    /// Show whether the store answers, how fast, and what it contains
    #[command(after_help = store::STATUS)]
    Status,
    /// Show the version of this program and of the store
    #[command(after_help = store::VERSION)]
    Version,
    /// Check the store for problems
    #[command(after_help = store::CHECK)]
    Check,
    /// Upgrade the records in the store to the layout of this version
    ///
    /// An upgrade cannot be undone. Data that this version cannot represent is listed, and then nothing is changed unless
    /// --drop-unknown is given. Asks for confirmation, unless --yes is given.
    #[command(after_help = store::UPGRADE)]
    Upgrade(UpgradeArgs),
    /// Show the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for your shell
    Completions(CompletionsArgs),
    /// Show the manual, or print its source for man(1)
    Man(ManArgs),
    /// Print the reference of all commands, as Markdown
    #[command(hide = true, after_help = shell::REFERENCE)]
    Reference,
}
