//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::AcquireArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: AcquireArgs) -> Result<Output> {
    bail!("`tollgate acquire` is not here yet")
}
