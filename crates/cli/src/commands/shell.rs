//! Comes next.

use anyhow::{Result, bail};

use crate::args::{CompletionsArgs, ManArgs};
use crate::output::Output;

/// Comes next.
pub(super) fn completions(_: CompletionsArgs) -> Result<Output> {
    bail!("comes next")
}

/// Comes next.
pub(super) fn man(_: ManArgs) -> Result<Output> {
    bail!("comes next")
}

/// Comes next.
pub(super) fn reference() -> Result<Output> {
    bail!("comes next")
}
