use std::ffi::OsString;

use clap::Args;

use super::PatienceArgs;
use crate::demand_text::{self, Amount};
use crate::names;

/// What to run, and what it takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate system set-defaults -l slots:3/at-once
  tollgate run me jobs --wait -- make test   # in 20 shells, 3 at a time
  tollgate run user-1 gpt-4 rpm=1 --timeout 30s -- curl https://api.example.com

Our exit code is that of the command: 127 if there is no such command, 126 if it
cannot be run, 128 and the number of the signal if one ended it; and 3 if a
limit refuses. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command.
If we are killed by SIGKILL, what it took is given back though the command goes
on.")]
pub(crate) struct RunArgs {
    /// The entity that pays
    #[arg(value_name = "ENTITY", value_parser = names::entity)]
    pub(crate) entity: String,
    /// The resource that is used
    #[arg(value_name = "RESOURCE", value_parser = names::resource)]
    pub(crate) resource: String,
    /// How much of which limit; 1 of every limit if none is named
    #[arg(value_name = "LIMIT=AMOUNT", value_parser = amount)]
    pub(crate) amounts: Vec<Amount>,
    /// How patiently.
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
    /// Give everything back if the command fails
    #[arg(long)]
    pub(crate) refund_on_failure: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Who forgets the `--` before the command should not have to guess.
fn amount(text: &str) -> Result<Amount, String> {
    demand_text::parse(text)
        .map_err(|why| format!("{why}; a command goes after --, such as tollgate run me jobs -- {text}"))
}
