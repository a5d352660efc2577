//! A call to the limiter, as `acquire` and `run` make it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tollgate::limiter::{LimiterError, LimiterLease};
use tollgate::{DemandError, Limiter};

use super::wait_progress::WaitProgress;
use super::waiting::VisibleWait;
use crate::args::WaitArgs;
use crate::context::Context;
use crate::demand_text::{self, Amount, Exact, Written};
use crate::exit::{CallDenied, Exit, UsageError};
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

/// Returns 1 of every limit, which is the default of a call.
///
/// # Errors
///
/// As the catalog.
pub(super) fn one_of_each(limiter: &Limiter, entity: &str, resource: &str) -> Result<Vec<Amount>> {
    let chain = limiter.catalog().chain(entity, resource).wait()?;
    let limits = chain.links.first().map(|link| link.limits.clone());
    let amount = |name: &str| Amount { limit: name.into(), amount: Written::one() };
    Ok(limits.iter().flat_map(|limits| limits.iter()).map(|limit| amount(limit.name().as_str())).collect())
}

/// Rewords an error for the command line, where the message of the library is about Rust.
pub(super) fn reword(error: LimiterError, units: &Units) -> anyhow::Error {
    match &error {
        LimiterError::Demand { entity, resource, why: DemandError::MissingAmount { limit } } => {
            UsageError(format!("{entity} on {resource}: {limit} needs an amount, such as {limit}=1")).into()
        }
        LimiterError::Demand {
            entity,
            resource,
            why: DemandError::Impossible { limit, asked, capacity },
        } => {
            let [asked, capacity] = [asked, capacity].map(|amount| units.show_taken(limit.as_str(), *amount));
            let why = format!("a demand of {asked} can never fit {limit}, whose capacity is {capacity}");
            UsageError(format!("{entity} on {resource}: {why}")).into()
        }
        _ => error.into(),
    }
}

impl Answer for DeniedAnswer {
    /// Never called: in text output a denial is an error.
    fn text(&self, _: &mut TextPage) {}
}
