use clap::Args;

use crate::demand_text::{self, Amount};
use crate::names;

/// The other resources of a call, and the amounts of each.
#[derive(Args, Debug)]
pub(crate) struct AlsoArgs {
    /// Also acquire from another resource, all or nothing
    #[arg(
        long = "also",
        num_args = 1..,
        value_names = ["RESOURCE", "LIMIT=AMOUNT"],
        value_parser = AlsoWord::parse
    )]
    words: Vec<AlsoWord>,
}

/// A word after `--also`: a resource, or an amount of the resource before it.
#[derive(Clone, Debug)]
enum AlsoWord {
    Resource(String),
    Amount(Amount),
}

impl AlsoWord {
    fn parse(text: &str) -> Result<AlsoWord, String> {
        // No resource name contains '='.
        if text.contains('=') {
            demand_text::parse(text).map(AlsoWord::Amount)
        } else {
            names::resource(text).map(AlsoWord::Resource)
        }
    }
}

impl AlsoArgs {
    /// Returns the resources with the amounts of each.
    ///
    /// # Errors
    ///
    /// A message about an amount that follows no resource.
    pub(crate) fn resources(&self) -> Result<Vec<(String, Vec<Amount>)>, String> {
        let mut also: Vec<(String, Vec<Amount>)> = Vec::new();
        for word in &self.words {
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
