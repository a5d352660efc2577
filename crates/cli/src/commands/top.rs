//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::TopArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: TopArgs) -> Result<Output> {
    bail!("`tollgate top` is not here yet")
}
