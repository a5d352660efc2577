use std::time::Duration;

use clap::Args;

use super::{CallArgs, PatienceArgs};
use crate::demand_text::{self, Amount};
use crate::{duration_text, names};

/// What to take.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tollgate acquire user-1 gpt-4 rpm=1 tpm=500
  tollgate acquire user-1 gpt-4 rpm=1 --timeout 30s --also embeddings rpm=2
  ticket=$(tollgate acquire user-1 gpt-4 tpm=500 --wait) && \\
    tollgate settle \"$ticket\" tpm=700

The ticket on stdout is what was taken. It is charged until it is settled; of
concurrency it is free again after --ttl. The exit code is 3 if a limit refuses.")]
pub(crate) struct AcquireArgs {
    /// Who wants how much of what.
    #[command(flatten)]
    pub(crate) call: CallArgs,
    /// Take of another resource as well, all or nothing
    #[arg(
        long,
        num_args = 1..,
        value_names = ["RESOURCE", "LIMIT=AMOUNT"],
        value_parser = AlsoWord::parse
    )]
    also: Vec<AlsoWord>,
    /// How patiently.
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
    /// After this, concurrency that was taken is free again if nobody settles the ticket
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration_text::parse)]
    pub(crate) ttl: Duration,
}

/// A word after `--also`: a resource, or an amount of the resource before it.
#[derive(Clone, Debug)]
enum AlsoWord {
    Resource(String),
    Amount(Amount),
}

impl AlsoWord {
    fn parse(text: &str) -> Result<AlsoWord, String> {
        // No resource has this in its name.
        match text.contains('=') {
            true => demand_text::parse(text).map(AlsoWord::Amount),
            false => names::resource(text).map(AlsoWord::Resource),
        }
    }
}

impl AcquireArgs {
    /// The resources that are taken from as well.
    ///
    /// # Errors
    ///
    /// The amount that follows no resource.
    pub(crate) fn also(&self) -> Result<Vec<(String, Vec<Amount>)>, String> {
        let mut also: Vec<(String, Vec<Amount>)> = Vec::new();
        for word in &self.also {
            match (word, also.last_mut()) {
                (AlsoWord::Resource(name), _) => also.push((name.clone(), Vec::new())),
                (AlsoWord::Amount(amount), Some((_, amounts))) => amounts.push(amount.clone()),
                (AlsoWord::Amount(Amount { limit, amount }), None) => {
                    let valid = "valid is --also RESOURCE LIMIT=AMOUNT, such as --also embeddings rpm=2";
                    return Err(format!("--also {limit}={amount} names no resource; {valid}"));
                }
            }
        }
        Ok(also)
    }
}
