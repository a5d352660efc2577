//! DynamoDB with no AWS, for development.

mod up;

use anyhow::Result;

use crate::args::LocalCommand;
use crate::context::Context;
use crate::output::Output;

/// Does what the command says.
pub(super) fn run(context: &Context, command: LocalCommand) -> Result<Output> {
    match command {
        LocalCommand::Up(args) => up::up(context, args),
    }
}
