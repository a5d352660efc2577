//! Comes next.

use anyhow::{Result, bail};

use crate::args::SystemCommand;
use crate::context::Context;
use crate::output::Output;

/// Comes next.
pub(super) fn run(_: &Context, _: SystemCommand) -> Result<Output> {
    bail!("comes next")
}
