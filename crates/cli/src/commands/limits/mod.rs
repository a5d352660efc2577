//! `tollgate limits`: limits in a file.

mod apply;
mod export;
mod plan;
mod stored;
mod view;

use std::path::Path;

use anyhow::Result;

pub(super) use apply::carry_out;
pub(super) use plan::LimitsPlan;
pub(super) use stored::stored_as_file;

use crate::args::LimitsCommand;
use crate::context::Context;
use crate::exit::Exit;
use crate::limits_file;
use crate::output::Output;
use view::PlanAnswer;

/// Runs a command for limits files.
pub(super) fn run(context: &Context, command: LimitsCommand) -> Result<Output> {
    match command {
        LimitsCommand::Plan { file } => Ok(Output::new(planned(context, &file)?)),
        LimitsCommand::Diff { file } => {
            let answer = planned(context, &file)?;
            let exit = if answer.is_empty() { Exit::OK } else { Exit::FAILURE };
            Ok(Output::new(answer).with_exit(exit))
        }
        LimitsCommand::Apply { file } => apply::apply(context, &file),
        LimitsCommand::Export { file, set } => export::export(context, file.as_deref(), set.as_deref()),
    }
}

fn planned(context: &Context, file: &Path) -> Result<PlanAnswer> {
    let wanted = limits_file::read(file)?;
    let plan = LimitsPlan::new(&context.catalog()?, file, &wanted)?;
    Ok(PlanAnswer::new(context, file, &plan))
}
