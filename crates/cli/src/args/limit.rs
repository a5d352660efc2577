use anyhow::Result;
use clap::Args;
use tollgate::{Limit, Limits};

use crate::exit::UsageError;
use crate::limit_text;

/// The limits of an argument.
#[derive(Args, Debug)]
pub(crate) struct LimitArgs {
    /// Limit as NAME:AMOUNT[/PERIOD][:BURST][,OPTION]; may be repeated
    ///
    /// rpm:1000 is 1000 a minute, tpm:10000/hour:20000 is 10000 an hour with a burst of 20000. Periods are second, minute,
    /// hour, day, or 90s, 5m, 2h, 7d. slots:4/at-once limits concurrency, spend:500/cron(0 0 * * * Europe/Berlin) and
    /// messages:80/session(3h) are quotas. Options are fixed, sliding, leaky, gcra, resolution=TIME, calls, soft=N, shadow
    /// and unit=SYMBOL:DECIMALS.
    #[arg(short, long = "limit", value_name = "LIMIT", value_parser = limit_text::parse)]
    limit: Vec<Limit>,
}

impl LimitArgs {
    /// Returns whether no limit was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.limit.is_empty()
    }

    /// Returns the limits as one set.
    ///
    /// # Errors
    ///
    /// [`UsageError`] if a name occurs twice, or if there are too many.
    pub(crate) fn limits(&self) -> Result<Limits> {
        Ok(Limits::new(self.limit.iter().cloned()).map_err(|why| UsageError(why.to_string()))?)
    }
}
