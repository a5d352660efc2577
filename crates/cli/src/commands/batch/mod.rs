//! Many requests over HTTP, to providers that say "not now".

mod account;
mod bad_lines;
mod closed;
mod dry_run;
mod events;
mod files;
mod gate;
mod http;
mod input;
mod key;
mod line_numbers;
mod lines;
mod output;
mod price;
mod reachability;
mod reasons;
mod request;
mod run;
mod secret;
mod survey;
mod view;
mod watch;

use anyhow::Result;

pub(crate) use account::Api;
pub(crate) use price::dollars;

use crate::args::BatchCommand;
use crate::context::Context;
use crate::output::Output;

/// Does what a command about batches says.
pub(super) fn run(context: &Context, command: BatchCommand) -> Result<Output> {
    match command {
        BatchCommand::Run(args) => run::run(context, args),
    }
}

/// What is wrong with a request whose id another one has.
fn duplicate(id: &str) -> String {
    format!("another request before it has the custom_id {id:?}, so it is not sent")
}

/// What is wrong with a request that is not the one that the result of its id is of.
fn changed(id: &str) -> String {
    format!(
        "the result of {id:?} is of another request than this; remove its line from the results to have this one sent, or \
         write to another file"
    )
}
