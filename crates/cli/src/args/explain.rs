use clap::Args;

use super::{AlsoArgs, CallArgs};

/// A call that might be made.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate explain user-1 gpt-4 rpm=1 tpm=500
  tollgate explain user-1 gpt-4 rpm=1 --also embeddings rpm=2

Nothing is taken. The exit code is 0 if the call would pass now, and 3 if not.")]
pub(crate) struct ExplainArgs {
    /// Who wants how much of what.
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// What else would be taken with it.
    #[command(flatten)]
    pub(crate) also: AlsoArgs,
}
