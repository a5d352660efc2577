//! A call to the limiter, as `acquire` and `run` make it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tollgate::limiter::{LimiterError, LimiterLease};
use tollgate::{DemandError, Kind, Limit, Limiter};

use super::wait_progress::WaitProgress;
use super::waiting::VisibleWait;
use crate::args::WaitArgs;
use crate::context::Context;
use crate::demand_text::{self, Amount, Exact, Written};
use crate::exit::{CallDenied, Exit, UsageError};
use crate::limit_text::counts_tokens;
use crate::output::{Answer, Format, Output, TextPage};
use crate::units::Units;
use crate::views::{DenialView, micros};

/// A call that is about to be made.
pub(super) struct LimiterCall<'a> {
    pub(super) entity: &'a str,
    pub(super) resource: &'a str,
    pub(super) amounts: &'a [Exact],
    pub(super) also: &'a [(String, Vec<Exact>)],
    /// The units of the resource of the call.
    pub(super) units: &'a Units,
    pub(super) wait: WaitArgs,
    /// How long a ticket, which outlives this process, holds concurrency; `None` if this process holds the lease.
    pub(super) detached: Option<Duration>,
}

/// The common fields of the output about a call.
#[derive(Serialize)]
pub(super) struct Called {
    dry_run: bool,
    namespace: String,
    pub(super) entity: String,
    pub(super) resource: String,
    admitted: bool,
    pub(super) waited_us: u64,
    /// The same in whole milliseconds.
    pub(super) waited_ms: u64,
}

/// The output about a denied call.
#[derive(Serialize)]
struct DeniedAnswer {
    #[serde(flatten)]
    called: Called,
    #[serde(flatten)]
    denial: DenialView,
}

impl LimiterCall<'_> {
    /// Makes the call. A denial is an output with `--json`, and an error otherwise.
    ///
    /// # Errors
    ///
    /// As the limiter.
    pub(super) fn take<'l>(
        &'l self,
        context: &Context,
        limiter: &'l Limiter,
    ) -> Result<std::result::Result<LimiterLease<'l>, Output>> {
        let taken = self.try_take(context, limiter);
        let error = match taken {
            Ok(lease) => return Ok(Ok(lease)),
            Err(error) => error,
        };
        match DenialView::of_error(&error) {
            Some((denial, waited)) if context.format == Format::Json => {
                let called = self.called(context, false, waited);
                Ok(Err(Output::new(DeniedAnswer { called, denial }).with_exit(Exit::DENIED)))
            }
            Some((denial, _)) => {
                let verb = match (self.wait.waits(), context.dry_run) {
                    (false, _) => "denied",
                    (true, false) => "timed out",
                    // A dry run does not wait.
                    (true, true) => "would have to wait",
                };
                Err(CallDenied(format!("{verb}: {}; {}", denial.reason, denial.retry_text())).into())
            }
            None => Err(reword(error, self.units)),
        }
    }

    fn try_take<'l>(
        &'l self,
        context: &Context,
        limiter: &'l Limiter,
    ) -> std::result::Result<LimiterLease<'l>, LimiterError> {
        let demand = demand_text::demand(self.amounts);
        let waits = self.wait.waits() && !context.dry_run;
        let priority = self.wait.priority();
        if !waits {
            let mut attempt = limiter.try_acquire(self.entity, self.resource, demand).priority(priority);
            if let Some(ttl) = self.detached {
                attempt = attempt.detached(ttl);
            }
            for (resource, amounts) in self.also {
                attempt = attempt.also(resource, demand_text::demand(amounts));
            }
            return attempt.wait()?.into_result().map_err(LimiterError::Denied);
        }
        let mut acquire = limiter.acquire(self.entity, self.resource, demand).priority(priority);
        if let Some(timeout) = self.wait.timeout {
            acquire = acquire.timeout(timeout);
        }
        if let Some(ttl) = self.detached {
            acquire = acquire.detached(ttl);
        }
        for (resource, amounts) in self.also {
            acquire = acquire.also(resource, demand_text::demand(amounts));
        }
        let _shown = WaitProgress::begin(limiter, self, context.progress());
        let _seen = VisibleWait::begin(limiter.catalog(), self);
        acquire.wait()
    }

    /// Returns the common fields of the output about an admitted call.
    pub(super) fn admitted(&self, context: &Context, lease: &LimiterLease<'_>) -> Called {
        self.called(context, true, lease.waited().unwrap_or_default())
    }

    fn called(&self, context: &Context, admitted: bool, waited: Duration) -> Called {
        Called {
            dry_run: context.dry_run,
            namespace: context.settings.namespace.value.clone(),
            entity: self.entity.into(),
            resource: self.resource.into(),
            admitted,
            waited_us: micros(waited),
            waited_ms: micros(waited) / 1_000,
        }
    }

    /// Returns what was acquired of each limit of the resource of the call, named or not.
    ///
    /// # Errors
    ///
    /// As the catalog.
    pub(super) fn taken(&self, limiter: &Limiter, lease: &LimiterLease<'_>) -> Result<BTreeMap<String, u64>> {
        let chain = limiter.catalog().chain(self.entity, self.resource).wait()?;
        let limits = chain.links.first().map(|link| link.limits.clone());
        let names = limits.iter().flat_map(|limits| limits.iter().map(|limit| limit.name().to_string()));
        Ok(names.filter_map(|name| lease.reserved(&name).map(|amount| (name, amount))).collect())
    }
}

/// Returns 1 of every limit, which is the default of a call: one request, one slot.
///
/// # Errors
///
/// As the catalog; [`UsageError`] if a limit counts money or tokens, because how much a call takes of them is not known.
pub(super) fn one_of_each(limiter: &Limiter, entity: &str, resource: &str) -> Result<Vec<Amount>> {
    let chain = limiter.catalog().chain(entity, resource).wait()?;
    let limits: Vec<Limit> =
        chain.links.first().iter().flat_map(|link| link.limits.iter().cloned()).collect();
    let unknown: Vec<&str> =
        limits.iter().filter(|limit| !counts_calls(limit)).map(|limit| limit.name().as_str()).collect();
    if !unknown.is_empty() {
        // What a call takes by itself need not be named.
        let named = limits.iter().filter(|limit| !matches!(limit.kind(), Kind::Resource | Kind::Calls(_)));
        let example: Vec<String> =
            named.map(|limit| format!("{}={}", limit.name(), typical(limit))).collect();
        let (unknown, example) = (unknown.join(" and "), example.join(" "));
        let why = format!("how much of {unknown} the call takes must be given");
        return Err(
            UsageError(format!("{entity} on {resource}: {why}, such as {example}; 0 takes none")).into()
        );
    }
    let amount = |limit: &Limit| Amount { limit: limit.name().to_string(), amount: Written::one() };
    Ok(limits.iter().map(amount).collect())
}

/// Returns whether 1 of a limit is one call, and not a token or a whole dollar.
fn counts_calls(limit: &Limit) -> bool {
    match limit.kind() {
        Kind::Resource | Kind::Calls(_) => true,
        _ => limit.unit().is_none_or(|unit| unit.decimals() == 0) && !counts_tokens(limit.name().as_str()),
    }
}

/// Returns an amount that a call may take of a limit, for an example.
fn typical(limit: &Limit) -> &'static str {
    match limit.unit() {
        Some(unit) if unit.decimals() > 1 => "0.05",
        None if counts_tokens(limit.name().as_str()) => "1500",
        _ => "1",
    }
}

/// Rewords an error for the command line.
pub(super) fn reword(error: LimiterError, units: &Units) -> anyhow::Error {
    match reworded(&error, units) {
        Some(message) => UsageError(message).into(),
        None => error.into(),
    }
}

/// Returns the message of an error as the command line puts it, if the library puts it in another way.
pub(super) fn reworded(error: &LimiterError, units: &Units) -> Option<String> {
    match error {
        LimiterError::Demand { entity, resource, why: DemandError::MissingAmount { limit } } => {
            Some(format!("{entity} on {resource}: {limit} needs an amount, such as {limit}=1"))
        }
        LimiterError::Demand {
            entity,
            resource,
            why: DemandError::Impossible { limit, asked, capacity },
        } => {
            let [asked, capacity] = [asked, capacity].map(|amount| units.show_taken(limit.as_str(), *amount));
            let why = format!("a demand of {asked} can never fit {limit}, whose capacity is {capacity}");
            Some(format!("{entity} on {resource}: {why}"))
        }
        _ => None,
    }
}

impl Answer for DeniedAnswer {
    /// Never called: in text output a denial is an error.
    fn text(&self, _: &mut TextPage) {}
}
