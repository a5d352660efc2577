//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::SimulateArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: SimulateArgs) -> Result<Output> {
    bail!("`tollgate simulate` is not here yet")
}
