use clap::Args;

/// Second half: not here yet.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {}
