//! The command line: what can be said, and the help about it.
//!
//! Help, man page and reference are all made from here. Names are checked as they are read, so that a bad one is
//! refused before anything is opened.

#[cfg(feature = "dynamodb")]
mod aggregate;
mod audit;
#[cfg(feature = "batch")]
mod batch;
#[cfg(feature = "batch")]
mod batch_patience;
mod call;
mod entity;
mod extra_resources;
mod global;
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

// The second half: commands that take from buckets. Each has a file here and one in `commands`.
mod acquire;
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
pub(crate) use batch_patience::BatchPatienceArgs;
pub(crate) use call::CallArgs;
pub(crate) use demo::DemoArgs;
pub(crate) use entity::{
    EntityCommand, EntityCreateArgs, EntityLimitsArgs, EntityListArgs, EntityResetArgs, EntitySetLimitsArgs,
    EntitySetParentArgs, EntityTopUpArgs,
};
pub(crate) use explain::ExplainArgs;
pub(crate) use extra_resources::AlsoArgs;
pub(crate) use global::GlobalArgs;
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
pub(crate) use set::{SetArgs, SetCommand, SetPlaceArgs};
pub(crate) use settle::SettleArgs;
pub(crate) use shell::{CompletionsArgs, ConfigCommand, ManArgs};
pub(crate) use simulate::SimulateArgs;
pub(crate) use store::UpgradeArgs;
pub(crate) use system::{SystemCommand, SystemSetArgs};
pub(crate) use token::TokenCommand;
pub(crate) use top::TopArgs;
pub(crate) use usage::{UsageCommand, UsageListArgs, UsagePlotArgs, UsageSelection};
pub(crate) use wait::PatienceArgs;

/// The width of help unless the terminal says otherwise, which is also that of the reference.
pub(crate) const HELP_WIDTH: usize = 80;

/// Decide who may call an expensive API now, who waits and who is refused
///
/// Limits on requests, tokens, money and concurrency, for entities in namespaces, kept in a file that needs no server
/// or in a table of DynamoDB.
/// What is written to stdout is data; whatever else there is to say goes to stderr.
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
    /// What every command understands.
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// What to do.
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
  0  done                        3  refused by a limit
  1  failed                      4  the store cannot be used
  2  the command line is wrong   5  a setting or a file of limits is wrong

Settings:
  A flag wins over the environment (TOLLGATE_STORE, TOLLGATE_NAMESPACE,
  TOLLGATE_PRINCIPAL, TOLLGATE_COLOR, TOLLGATE_STORE_TIMEOUT,
  TOLLGATE_AUDIT_RETENTION, TOLLGATE_USAGE_RETENTION, TOLLGATE_CACHE_TTL), that
  over the config file (--config, TOLLGATE_CONFIG, or tollgate/config.toml in
  $XDG_CONFIG_HOME), that over the default. `tollgate config show --sources`
  tells which.";

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tenants, which have nothing in common
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Who is limited: users, keys, projects
    #[command(subcommand)]
    Entity(EntityCommand),
    /// What is used: models, endpoints
    #[command(subcommand)]
    Resource(ResourceCommand),
    /// Limits for all entities and resources
    #[command(subcommand)]
    System(SystemCommand),
    /// Who changed what, and when
    #[command(subcommand)]
    Audit(AuditCommand),
    /// What was used, by hour, day and month
    #[command(subcommand)]
    Usage(UsageCommand),
    /// The secret that tickets are sealed with
    #[command(subcommand)]
    Token(TokenCommand),

    /// Take from the limits of an entity
    Acquire(AcquireArgs),
    /// Say what a call really used
    Settle(SettleArgs),
    /// Show how the limits of an entity stand
    Peek(PeekArgs),
    /// Tell which limit of which entity decides, and when a call would pass
    Explain(ExplainArgs),
    /// Replay a log of calls against other limits
    Simulate(SimulateArgs),
    /// Keep limits in a file: plan, apply, diff, export
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Look after the limit sets that programs keep in the store
    #[command(subcommand)]
    Set(SetCommand),
    /// Run a command when the limits allow it
    Run(RunArgs),
    /// Watch the busiest entities
    Top(TopArgs),
    /// Watch a small simulated fleet
    Demo(DemoArgs),
    /// Send many requests to providers that say "not now"
    #[cfg(feature = "batch")]
    #[command(subcommand)]
    Batch(BatchCommand),

    /// Write down the usage of a DynamoDB table from its stream, and archive audit events
    #[cfg(feature = "dynamodb")]
    Aggregate(AggregateArgs),
    /// DynamoDB with no AWS, for development
    #[cfg(feature = "local")]
    #[command(subcommand)]
    Local(LocalCommand),

    /// Serve a provider of language models that is none, for tests
    #[cfg(feature = "mock-provider")]
    MockProvider(MockProviderArgs),

    /// Show the store: whether it answers, how fast, and what is in it
    #[command(after_help = store::STATUS)]
    Status,
    /// Show the version of this program and of the store
    #[command(after_help = store::VERSION)]
    Version,
    /// Look for what is wrong in the store
    #[command(after_help = store::CHECK)]
    Check,
    /// Bring the records in the store to the layout of this version
    ///
    /// There is no way back. What the records say that this version has no form for is listed, and nothing is changed unless
    /// --drop-unknown is given. Asks first, unless --yes is given.
    #[command(after_help = store::UPGRADE)]
    Upgrade(UpgradeArgs),
    /// Show the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print what makes a shell complete our commands
    Completions(CompletionsArgs),
    /// Show the manual, or print it for man(1)
    Man(ManArgs),
    /// Print the reference of all commands, as Markdown
    #[command(hide = true, after_help = shell::REFERENCE)]
    Reference,
}
