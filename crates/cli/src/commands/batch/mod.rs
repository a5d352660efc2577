//! `tollgate batch`: sends many requests over HTTP to providers that throttle.

mod account;
mod bad_lines;
mod bar;
mod calls;
mod closed;
mod dry_run;
mod endpoint;
mod events;
mod export;
mod feed;
mod files;
mod first_call;
mod header;
mod http;
mod input;
mod key;
mod last_error;
mod line_numbers;
mod lines;
mod openai_line;
mod output;
mod price;
mod price_table;
mod progress;
mod reachability;
mod reasons;
mod request;
mod run;
mod secret;
mod survey;
mod throttling;
mod throughput;
mod view;
mod watch;

use std::path::Path;

use anyhow::Result;

pub(crate) use account::Api;
pub(crate) use export::ResultFormat;
pub(crate) use header::secret_word;
pub(crate) use price::dollars;
#[cfg(test)]
pub(crate) use request::BatchRequest;
pub(crate) use secret::ApiKey;

use crate::args::BatchCommand;
use crate::context::Context;
use crate::output::Output;

/// Runs a command for batches.
pub(super) fn run(context: &Context, command: BatchCommand) -> Result<Output> {
    match command {
        BatchCommand::Run(args) => run::run(context, *args),
    }
}

/// Returns the error for a request with a duplicate id.
fn duplicate(id: &str) -> String {
    format!("another request before it has the custom_id {id:?}, so it is not sent")
}

/// Returns the error for a request that was changed since the result of its id was written to `results`.
fn changed(id: &str, results: &Path) -> String {
    format!(
        "the request {id:?} was changed since its result was written; remove its line from {} to send it again, or write to \
         another file",
        results.display()
    )
}
