//! Limits for everybody and everything.

use anyhow::Result;

use super::levels;
use crate::args::{SystemCommand, SystemSetArgs};
use crate::context::Context;
use crate::output::Output;
use crate::views::OwnedLevel;

/// Does what a command about the system says.
pub(super) fn run(context: &Context, command: SystemCommand) -> Result<Output> {
    match command {
        SystemCommand::Set(SystemSetArgs { limits, on_unavailable }) => {
            levels::set_system(context, &limits, on_unavailable)
        }
        SystemCommand::Get => levels::get(context, &OwnedLevel::system()),
        SystemCommand::Delete => levels::delete(context, &OwnedLevel::system()),
    }
}
