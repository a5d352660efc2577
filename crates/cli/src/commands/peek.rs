//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::PeekArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: PeekArgs) -> Result<Output> {
    bail!("`tollgate peek` is not here yet")
}
