//! `tollgate usage`.

mod list;
mod plot;
mod series;
mod summary;

use anyhow::Result;

use crate::args::UsageCommand;
use crate::context::Context;
use crate::output::Output;

/// Runs a command for usage.
pub(super) fn run(context: &Context, command: UsageCommand) -> Result<Output> {
    match command {
        UsageCommand::List(args) => list::list(context, &args),
        UsageCommand::Summary(selection) => summary::summary(context, &selection),
        UsageCommand::Plot(args) => plot::plot(context, &args),
    }
}
