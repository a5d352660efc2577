use std::ffi::OsString;

use clap::Args;

use super::WaitArgs;
use crate::demand_text::{self, Amount};
use crate::names;

/// On one line it would not fit 80 columns.
const USAGE: &str = "tollgate run [OPTIONS] <ENTITY> <RESOURCE> [LIMIT=AMOUNT]...
                    -- <COMMAND>...";

/// The arguments of `tollgate run`.
#[derive(Args, Debug)]
#[command(override_usage = USAGE, after_help = "Examples:
  tollgate system set-defaults -l slots:3/at-once
  tollgate run me jobs --wait -- make test   # in 20 shells, 3 at a time
  tollgate run user-1 gpt-4 rpm=1 --timeout 30s -- curl https://api.example.com

Without amounts the command takes 1 of every limit: one request, one slot. How
much it takes of a limit that counts tokens or money must be given: 1 would be a
single token, or a whole dollar. Once amounts are given, a rate that is not
named is not taken from.

The exit code is that of the command: 127 if there is no such command, 126 if it
cannot be run, 128 plus the signal number if a signal ended it. It is 3 if a
limit denies the call. SIGINT, SIGTERM, SIGHUP and SIGQUIT are forwarded to the
command. If tollgate itself is killed by SIGKILL, everything acquired is
released, although the command keeps running.")]
pub(crate) struct RunArgs {
    /// Entity to charge
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// Resource to use
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// Amount of each limit [default: 1 of every limit, none of which may count tokens or money]
    #[arg(value_name = "LIMIT=AMOUNT", value_parser = amount)]
    pub(crate) amounts: Vec<Amount>,
    /// Whether to wait, and how long.
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    /// Refund everything if the command fails
    #[arg(long)]
    pub(crate) refund_on_failure: bool,
    /// Command to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Parses an amount. The error also covers a command without the `--` before it.
fn amount(text: &str) -> Result<Amount, String> {
    demand_text::parse(text)
        .map_err(|why| format!("{why}; a command goes after --, such as tollgate run me jobs -- {text}"))
}
