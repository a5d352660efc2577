//! Comes next.

use anyhow::{Result, bail};

use crate::args::ResourceCommand;
use crate::context::Context;
use crate::output::Output;

/// Comes next.
pub(super) fn run(_: &Context, _: ResourceCommand) -> Result<Output> {
    bail!("comes next")
}
