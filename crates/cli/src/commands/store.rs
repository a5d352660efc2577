//! Comes next.

use anyhow::{Result, bail};

use crate::context::Context;
use crate::output::Output;

/// Comes next.
pub(super) fn status(_: &Context) -> Result<Output> {
    bail!("comes next")
}

/// Comes next.
pub(super) fn version(_: &Context) -> Result<Output> {
    bail!("comes next")
}

/// Comes next.
pub(super) fn check(_: &Context) -> Result<Output> {
    bail!("comes next")
}

/// Comes next.
pub(super) fn upgrade(_: &Context) -> Result<Output> {
    bail!("comes next")
}
