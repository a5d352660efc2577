//! Checks of all requests before the first one is sent.

use std::path::Path;

use anyhow::{Context as _, Result};
use tollgate_batch::journal::{Finished, OnFailed, SeenBefore};
use tollgate_provider::{Estimator, Tokens};

use super::export;
use super::input::{self, without_price};
use super::price::Prices;
use super::request::BatchRequest;
use crate::args::BatchRunArgs;
use crate::exit::UsageError;

/// Counts of what a batch would do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// Requests that would be sent.
    pub(super) requests: u64,
    pub(super) done_before: u64,
    pub(super) failed_before: u64,
    /// Requests that were changed since an earlier run finished them.
    pub(super) changed: u64,
    pub(super) duplicates: u64,
    /// Invalid lines.
    pub(super) bad_lines: u64,
    /// The error of the first invalid line or duplicate.
    pub(super) first_bad: Option<String>,
    /// Tokens of all calls, with the longest replies that the requests allow.
    pub(super) tokens_max: u64,
    /// Their cost in millionths of a dollar.
    pub(super) cost_micros_max: u64,
    /// Requests whose model has no price.
    pub(super) without_price: u64,
}

/// Refuses requests that certainly cannot be sent with these options. Returns the number of lines; `None` if the input can be
/// read only once. Such an input is not checked: its invalid requests go to the errors file while others are sent.
///
/// # Errors
///
/// [`UsageError`] with the line and the reason.
pub(super) fn check(args: &BatchRunArgs, prices: &Prices) -> Result<Option<u64>> {
    if input::is_stdin(&args.requests) || !args.requests.is_file() {
        return Ok(None);
    }
    let mut lines = input::open(&args.requests)?;
    let mut count = 0;
    let refused = |line: u64, why: &str| {
        UsageError(format!("line {line} of {}: {why}; nothing was sent", args.requests.display()))
    };
    // A read error ends the check: the run itself reports it.
    while let Ok(Some(line)) = lines.next() {
        let line = line.as_deref().map_err(|_| ()).unwrap_or("unreadable").trim();
        if line.is_empty() {
            continue;
        }
        count += 1;
        match BatchRequest::parse(line, lines.number()) {
            Ok(request) if args.max_cost.is_some() && prices.of(&request.model).is_none() => {
                return Err(refused(lines.number(), &without_price(&request.model)).into());
            }
            Err(bad) if bad.is_stream() => return Err(refused(lines.number(), &bad.to_string()).into()),
            _ => {}
        }
    }
    Ok(Some(count))
}

impl Survey {
    /// Reads all requests and the existing results.
    pub(super) fn of(args: &BatchRunArgs, prices: &Prices) -> Result<Survey> {
        let mut finished = if args.resume {
            finished(&export::journal_path(args), args.retry_failed)?
        } else {
            Finished::default()
        };
        let mut lines = input::open(&args.requests)?;
        let estimator = Estimator::new();
        let mut survey = Survey::default();
        while let Some(line) = lines.next().context("the requests cannot be read")? {
            let request = match &line {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => BatchRequest::parse(line, lines.number()).map_err(|bad| bad.to_string()),
                Err(bad) => Err(bad.why.clone()),
            };
            match request {
                Ok(request) => {
                    let seen = finished.check(&request.id, Some(request.fingerprint()));
                    if seen == SeenBefore::Again {
                        survey.note(lines.number(), &super::duplicate(&request.id));
                    }
                    survey.add(&request, seen, prices, &estimator);
                }
                Err(why) => {
                    survey.bad_lines += 1;
                    survey.note(lines.number(), &why);
                }
            }
        }
        Ok(survey)
    }

    fn note(&mut self, line: u64, why: &str) {
        self.first_bad.get_or_insert_with(|| format!("line {line}: {why}"));
    }

    fn add(&mut self, request: &BatchRequest, seen: SeenBefore, prices: &Prices, estimator: &Estimator) {
        let count = match seen {
            SeenBefore::New => &mut self.requests,
            SeenBefore::Again => &mut self.duplicates,
            SeenBefore::Earlier { has_changed: true, .. } => &mut self.changed,
            SeenBefore::Earlier { has_failed: true, .. } => &mut self.failed_before,
            SeenBefore::Earlier { .. } => &mut self.done_before,
        };
        *count += 1;
        if seen != SeenBefore::New {
            return;
        }
        let estimate = estimator.estimate_body(request.body.get().as_bytes());
        self.tokens_max = self.tokens_max.saturating_add(estimate.total_max());
        let tokens = Tokens::new(estimate.input, estimate.output_max.unwrap_or(estimate.output));
        match prices.of(&request.model) {
            Some(price) => self.cost_micros_max = self.cost_micros_max.saturating_add(price.micros(tokens)),
            None => self.without_price += 1,
        }
    }
}

/// Reads what earlier runs have finished.
fn finished(journal: &Path, retries_failed: bool) -> Result<Finished> {
    if !journal.exists() {
        return Ok(Finished::default());
    }
    let on_failed = if retries_failed { OnFailed::Retry } else { OnFailed::Keep };
    Ok(Finished::load(journal, on_failed).map_err(|error| UsageError(error.to_string()))?)
}
