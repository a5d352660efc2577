//! Comes next.

use anyhow::{Result, bail};

use crate::args::AuditCommand;
use crate::context::Context;
use crate::output::Output;

/// Comes next.
pub(super) fn run(_: &Context, _: AuditCommand) -> Result<Output> {
    bail!("comes next")
}
