//! Comes next.

use anyhow::{Result, bail};

use crate::args::EntityCommand;
use crate::context::Context;
use crate::output::Output;

/// Comes next.
pub(super) fn run(_: &Context, _: EntityCommand) -> Result<Output> {
    bail!("comes next")
}
