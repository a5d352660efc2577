use clap::Args;

use super::{AlsoArgs, CallArgs};

/// The arguments of `tollgate explain`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate explain user-1 jobs
  tollgate explain user-1 gpt-4 rpm=1 tpm=500
  tollgate explain user-1 gpt-4 rpm=1 --also embeddings rpm=2

Without amounts the call takes 1 of every limit, as that of `tollgate run`; how
much it takes of a limit that counts tokens or money must be given. Nothing is
acquired. The exit code is 0 if the call would be admitted now, and 3 if it
would be denied.")]
pub(crate) struct ExplainArgs {
    /// The entity, the resource and the amounts.
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// Other resources to acquire together with it.
    #[command(flatten)]
    pub(crate) also: AlsoArgs,
}
