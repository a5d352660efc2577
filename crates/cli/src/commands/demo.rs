//! Second half: not here yet.

use anyhow::{Result, bail};

use crate::args::DemoArgs;
use crate::context::Context;
use crate::output::Output;

/// Not here yet.
pub(super) fn run(_: &Context, _: DemoArgs) -> Result<Output> {
    bail!("`tollgate demo` is not here yet")
}
