//! `tollgate local`: DynamoDB without AWS, for development.

mod up;

use anyhow::Result;

use crate::args::LocalCommand;
use crate::context::Context;
use crate::output::Output;

/// Runs a command for the local server.
pub(super) fn run(context: &Context, command: LocalCommand) -> Result<Output> {
    match command {
        LocalCommand::Up(args) => up::up(context, args),
    }
}
