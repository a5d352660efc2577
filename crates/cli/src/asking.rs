//! Confirmation before something is deleted.
//!
//! Every command that deletes calls [`Context::confirm_deletion`]. On a terminal it asks, and lists what will be deleted;
//! elsewhere it requires `--yes`, so that a script never deletes by accident.

use std::fmt::{self, Display};
use std::io::{self, BufRead, Write};

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::exit::UsageError;
use crate::output::{counted, wrap_message};

/// The answer to a question was no.
#[derive(Debug)]
pub(crate) struct Cancelled;

impl Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled; nothing was changed")
    }
}

impl std::error::Error for Cancelled {}

impl Context {
    /// Asks before something is deleted: `what` is its name, `contents` what is deleted with it, such as ` with 3 entities`.
    /// `contents` is called only if a question is asked.
    ///
    /// # Errors
    ///
    /// As [`confirm`](Context::confirm), and those of `contents`.
    pub(crate) fn confirm_deletion(
        &self,
        what: impl Display,
        contents: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        let contents = if self.asks() { contents()? } else { String::new() };
        self.confirm(format_args!("delete {what}{contents}"))
    }

    /// Asks before something that cannot be undone, such as to `overwrite limits.toml`.
    ///
    /// # Errors
    ///
    /// [`Cancelled`] if the answer is no; [`UsageError`] if there is no terminal to ask on and `--yes` was not given.
    pub(crate) fn confirm(&self, to_do: impl Display) -> Result<()> {
        if self.yes || self.dry_run {
            return Ok(());
        }
        if !self.terminal.can_ask {
            return Err(UsageError(format!("to {to_do}, add --yes: there is no terminal to ask on")).into());
        }
        write!(anstream::stderr(), "{}", wrap_message(&format!("{to_do}? [y/N] "), &self.terminal))?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("the answer cannot be read")?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Cancelled.into()),
        }
    }

    fn asks(&self) -> bool {
        !self.yes && !self.dry_run && self.terminal.can_ask
    }
}

/// Formats what is deleted together with something: ` with 3 entities and 1 bucket`. Kinds with a count of 0 are left out.
pub(crate) fn with_contents(contents: &[(u64, &str, &str)]) -> String {
    let there = contents.iter().filter(|(count, ..)| *count > 0);
    let texts: Vec<String> = there.map(|(count, one, many)| counted(*count, one, many)).collect();
    match texts.as_slice() {
        [] => String::new(),
        [only] => format!(" with {only}"),
        [first @ .., last] => format!(" with {} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_listed_in_words() {
        let said = |counts: [u64; 3]| {
            let [entities, buckets, records] = counts;
            with_contents(&[
                (entities, "entity", "entities"),
                (buckets, "bucket", "buckets"),
                (records, "record", "records"),
            ])
        };
        assert_eq!(said([0, 0, 0]), "");
        assert_eq!(said([1, 0, 0]), " with 1 entity");
        assert_eq!(said([1, 0, 2_000]), " with 1 entity and 2,000 records");
        assert_eq!(said([3, 1, 2]), " with 3 entities, 1 bucket and 2 records");
    }
}
