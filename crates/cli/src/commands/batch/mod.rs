//! Many requests over HTTP, to providers that say "not now".

mod account;
mod bar;
mod endpoint;
mod events;
mod export;
mod gate;
mod header;
mod http;
mod input;
mod last_error;
mod openai_line;
mod output;
mod patience;
mod price;
mod price_table;
mod progress;
mod reasons;
mod request;
mod run;
mod secret;
mod throughput;
mod view;
mod watch;

use anyhow::Result;

pub(crate) use account::Api;
pub(crate) use export::ResultFormat;
pub(crate) use header::secret_word;
pub(crate) use price::dollars;
pub(crate) use secret::Secret;

use crate::args::BatchCommand;
use crate::context::Context;
use crate::output::Output;

/// Does what a command about batches says.
pub(super) fn run(context: &Context, command: BatchCommand) -> Result<Output> {
    match command {
        BatchCommand::Run(args) => run::run(context, *args),
    }
}
