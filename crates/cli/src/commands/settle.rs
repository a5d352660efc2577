//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::SettleArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: SettleArgs) -> Result<Output> {
    bail!("`tollgate settle` is not here yet")
}
