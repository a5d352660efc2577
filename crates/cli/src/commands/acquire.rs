//! `tollgate acquire`: acquires from limits, and prints a ticket.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use serde::Serialize;
use tollgate::Limiter;
use tollgate::limiter::TicketError;

use super::call::{Called, LimiterCall};
use crate::args::{AcquireArgs, CallArgs};
use crate::context::Context;
use crate::demand_text::Exact;
use crate::exit::UsageError;
use crate::output::{Answer, Output, TextPage, grouped};
use crate::units::Units;

/// Acquires, and prints the ticket.
pub(super) fn run(context: &Context, args: AcquireArgs) -> Result<Output> {
    let limiter = context.limiter()?;
    let CallArgs { entity, resource, amounts } = &args.call;
    let units = Units::of_call(limiter.catalog(), entity, resource)?;
    let amounts = units.exact(amounts)?;
    let mut also = Vec::new();
    for (resource, amounts) in args.also.resources().map_err(UsageError)? {
        let amounts = Units::of_call(limiter.catalog(), entity, &resource)?.exact(&amounts)?;
        also.push((resource, amounts));
    }
    let call = LimiterCall {
        entity,
        resource,
        amounts: &amounts,
        also: &also,
        units: &units,
        wait: args.wait,
        detached: Some(args.ttl),
    };
    let lease = match call.take(context, &limiter)? {
        Ok(lease) => lease,
        Err(denied) => return Ok(denied),
    };
    let called = call.admitted(context, &lease);
    let taken = call.taken(&limiter, &lease)?;
    let warnings = lease.warnings().iter().map(ToString::to_string).collect();
    if lease.is_degraded() {
        return Err(without_the_store());
    }
    let ticket = lease.into_ticket().wait()?;
    let undo = cancel_unwritten(&limiter, &ticket);
    let ticket = (!context.dry_run).then_some(ticket);
    let also = also.into_iter().map(|(resource, amounts)| (resource, asked(amounts))).collect();
    Ok(Output::new(AcquireAnswer { called, ticket, taken, also, warnings, units }).or_undo(undo))
}

/// Returns the error for a call that was admitted without the store, so that there is no ticket.
fn without_the_store() -> anyhow::Error {
    let policy = "the policy for that case (on_unavailable) admits calls without it";
    let outcome =
        "so nothing was acquired, and there is no ticket to settle: continue without one, or try again later";
    anyhow::Error::from(TicketError::Degraded)
        .context(format!("the store did not answer, and {policy}; {outcome}"))
}

/// Cancels a ticket that could not be written, because no caller can settle it.
fn cancel_unwritten(limiter: &Limiter, ticket: &str) -> impl FnOnce(anyhow::Error) -> anyhow::Error + use<> {
    let limiter = limiter.clone();
    let ticket = ticket.to_owned();
    move |why| {
        let cancelled = limiter.redeem(&ticket).wait().map_err(anyhow::Error::from);
        let cancelled = cancelled.and_then(|lease| Ok(lease.cancel().wait()?));
        match cancelled {
            // As text, without the error itself: a closed pipe is not a success here.
            Ok(()) => anyhow!("the ticket cannot be written ({why}); everything was refunded"),
            Err(lost) => anyhow!("the ticket {ticket} can be neither written ({why}) nor refunded: {lost}"),
        }
    }
}

fn asked(amounts: Vec<Exact>) -> BTreeMap<String, u64> {
    amounts.into_iter().map(|exact| (exact.limit, exact.amount)).collect()
}

#[derive(Serialize)]
struct AcquireAnswer {
    #[serde(flatten)]
    called: Called,
    /// `null` in a dry run.
    ticket: Option<String>,
    taken: BTreeMap<String, u64>,
    /// What was asked of the other resources.
    also: BTreeMap<String, BTreeMap<String, u64>>,
    warnings: Vec<String>,
    #[serde(skip)]
    units: Units,
}

impl Answer for AcquireAnswer {
    fn text(&self, page: &mut TextPage) {
        let AcquireAnswer { called: Called { entity, resource, waited_ms, .. }, taken, warnings, .. } = self;
        let taken: Vec<String> = taken
            .iter()
            .map(|(limit, amount)| format!("{limit} {}", self.units.show_taken(limit, *amount)))
            .collect();
        let waited = match waited_ms {
            0 => String::new(),
            _ => format!(", after {}ms", grouped(waited_ms)),
        };
        let warnings = match &warnings[..] {
            [] => String::new(),
            some => format!("; soft limits exceeded: {}", some.join(", ")),
        };
        let action = if self.ticket.is_some() { "acquired" } else { "would acquire" };
        if let Some(ticket) = &self.ticket {
            page.verbatim(ticket);
        }
        let taken = taken.join(", ");
        page.remark(format_args!("{action} {taken} of {entity} on {resource}{waited}{warnings}"));
    }
}
