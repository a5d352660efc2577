//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::ExplainArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: ExplainArgs) -> Result<Output> {
    bail!("`tollgate explain` is not here yet")
}
