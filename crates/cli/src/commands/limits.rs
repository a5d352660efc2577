//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::LimitsArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: LimitsArgs) -> Result<Output> {
    bail!("`tollgate limits` is not here yet")
}
