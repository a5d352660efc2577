//! The commands: each is a function from the context and its arguments to an output.

mod acquire;
#[cfg(feature = "dynamodb")]
mod aggregate;
mod audit;
#[cfg(feature = "batch")]
pub(crate) mod batch;
mod call;
mod capacity;
mod cascade;
mod config;
#[cfg(feature = "mock-provider")]
mod demo;
mod disable;
mod entity;
mod explain;
mod limits;
#[cfg(feature = "local")]
mod local;
#[cfg(feature = "mock-provider")]
mod mock_provider;
mod namespace;
mod peek;
mod resource;
mod run;
mod set;
mod settle;
mod shell;
#[cfg(any(feature = "batch", feature = "local", feature = "mock-provider"))]
mod shutdown;
mod simulate;
mod store;
mod stored_limits;
mod system;
mod token;
mod top;
mod usage;
mod wait_progress;
mod waiting;

use anyhow::Result;

use crate::args::Command;
use crate::context::Context;
use crate::exit::UsageError;
use crate::output::Output;

/// Runs a command.
pub(crate) fn run(context: &Context, command: Command) -> Result<Output> {
    if let (true, DryRun::Unsupported(name)) = (context.dry_run, DryRun::of(&command)) {
        let why = format!("{name} does not support --dry-run; nothing was done");
        return Err(UsageError(why).into());
    }
    match command {
        Command::Namespace(command) => namespace::run(context, command),
        Command::Entity(command) => entity::run(context, command),
        Command::Resource(command) => resource::run(context, command),
        Command::System(command) => system::run(context, command),
        Command::Audit(command) => audit::run(context, command),
        Command::Usage(command) => usage::run(context, command),
        Command::Token(command) => token::run(context, command),
        Command::Acquire(args) => acquire::run(context, args),
        Command::Settle(args) => settle::run(context, args),
        Command::Peek(args) => peek::run(context, args),
        Command::Explain(args) => explain::run(context, args),
        Command::Simulate(args) => simulate::run(context, args),
        Command::Limits(command) => limits::run(context, command),
        Command::Set(command) => set::run(context, command),
        Command::Run(args) => run::run(context, args),
        Command::Top(args) => {
            // The empty replacement of a missing store would never show the store that is created later.
            if !context.dry_run {
                context.store_to_change()?;
            }
            top::run(context, args)
        }
        #[cfg(feature = "mock-provider")]
        Command::Demo(args) => demo::run(context, args),
        #[cfg(feature = "batch")]
        Command::Batch(command) => batch::run(context, command),
        #[cfg(feature = "dynamodb")]
        Command::Aggregate(args) => aggregate::run(context, args),
        #[cfg(feature = "local")]
        Command::Local(command) => local::run(context, command),
        #[cfg(feature = "mock-provider")]
        Command::MockProvider(args) => mock_provider::run(context, args),
        Command::Status => store::status(context),
        Command::Version => store::version(context),
        Command::Check => store::check(context),
        Command::Upgrade(args) => store::upgrade(context, &args),
        Command::Config(command) => config::run(context, command),
        Command::Completions(args) => shell::completions(args),
        Command::Man(args) => shell::man(context, &args),
        Command::Reference => shell::reference(),
    }
}

/// Whether a command supports `--dry-run`. Every command is named here, so that a new one has to decide.
enum DryRun {
    /// It shows what it would do, and writes nothing.
    Supported,
    /// It only writes or serves.
    #[allow(dead_code, reason = "the commands that only serve are features")]
    Unsupported(&'static str),
}

impl DryRun {
    fn of(command: &Command) -> DryRun {
        match command {
            Command::Namespace(_)
            | Command::Entity(_)
            | Command::Resource(_)
            | Command::System(_)
            | Command::Audit(_)
            | Command::Usage(_)
            | Command::Token(_)
            | Command::Acquire(_)
            | Command::Settle(_)
            | Command::Peek(_)
            | Command::Explain(_)
            | Command::Simulate(_)
            | Command::Limits(_)
            | Command::Set(_)
            | Command::Run(_)
            | Command::Top(_)
            | Command::Status
            | Command::Version
            | Command::Check
            | Command::Upgrade(_)
            | Command::Config(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Reference => DryRun::Supported,
            #[cfg(feature = "batch")]
            Command::Batch(_) => DryRun::Supported,
            #[cfg(feature = "mock-provider")]
            Command::Demo(_) => DryRun::Unsupported("demo"),
            #[cfg(feature = "dynamodb")]
            Command::Aggregate(_) => DryRun::Unsupported("aggregate"),
            #[cfg(feature = "local")]
            Command::Local(_) => DryRun::Unsupported("local up"),
            #[cfg(feature = "mock-provider")]
            Command::MockProvider(_) => DryRun::Unsupported("mock-provider"),
        }
    }
}
