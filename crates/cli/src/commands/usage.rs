//! Comes next.

use anyhow::{Result, bail};

use crate::args::UsageCommand;
use crate::context::Context;
use crate::output::Output;

/// Comes next.
pub(super) fn run(_: &Context, _: UsageCommand) -> Result<Output> {
    bail!("comes next")
}
