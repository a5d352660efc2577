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
        SystemCommand::SetDefaults(SystemSetArgs { limits, on_unavailable }) => {
            levels::set_system(context, &limits, on_unavailable)
        }
        SystemCommand::GetDefaults => levels::get(context, &OwnedLevel::system()),
        SystemCommand::DeleteDefaults => levels::delete(context, &OwnedLevel::system()),
    }
}
