//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::RunArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: RunArgs) -> Result<Output> {
    bail!("`tollgate run` is not here yet")
}
