//! `tollgate system`.

use anyhow::Result;

use super::stored_limits;
use crate::args::{SystemCommand, SystemSetArgs};
use crate::context::Context;
use crate::output::Output;
use crate::views::OwnedLevel;

/// Runs a command for the default limits.
pub(super) fn run(context: &Context, command: SystemCommand) -> Result<Output> {
    match command {
        SystemCommand::Set(SystemSetArgs { limits, on_unavailable }) => {
            stored_limits::set_system(context, &limits, on_unavailable)
        }
        SystemCommand::Get => stored_limits::get(context, &OwnedLevel::system()),
        SystemCommand::Delete => stored_limits::delete(context, &OwnedLevel::system()),
    }
}
