//! Comes next.

use anyhow::{Result, bail};

use crate::args::NamespaceCommand;
use crate::context::Context;
use crate::output::Output;

/// Comes next.
pub(super) fn run(_: &Context, _: NamespaceCommand) -> Result<Output> {
    bail!("comes next")
}
