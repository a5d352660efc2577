//! Taking, and handing on what was taken as a ticket.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::call::{Call, Called};
use crate::args::{AcquireArgs, CallArgs};
use crate::context::Context;
use crate::demand_text::Exact;
use crate::exit::Usage;
use crate::output::{Answer, Output, Page, grouped};
use crate::units::Units;

/// Takes, and prints the ticket.
pub(super) fn run(context: &Context, args: AcquireArgs) -> Result<Output> {
    let limiter = context.limiter()?;
    let CallArgs { entity, resource, amounts } = &args.call;
    let units = Units::of_call(limiter.catalog(), entity, resource)?;
    let amounts = units.exact(amounts)?;
    let mut also = Vec::new();
    for (resource, amounts) in args.also.resources().map_err(Usage)? {
        let amounts = Units::of_call(limiter.catalog(), entity, &resource)?.exact(&amounts)?;
        also.push((resource, amounts));
    }
    let call = Call {
        entity,
        resource,
        amounts: &amounts,
        also: &also,
        units: &units,
        patience: args.patience,
        detached: Some(args.ttl),
    };
    let lease = match call.take(context, &limiter)? {
        Ok(lease) => lease,
        Err(refused) => return Ok(refused),
    };
    let called = call.admitted(context, &lease);
    let taken = call.taken(&limiter, &lease)?;
    let remarks = lease.remarks().iter().map(ToString::to_string).collect();
    let ticket = lease.into_ticket()?;
    let ticket = (!context.dry_run).then_some(ticket);
    let also = also.into_iter().map(|(resource, amounts)| (resource, asked(amounts))).collect();
    Ok(Output::new(AcquireAnswer { called, ticket, taken, also, remarks, units }))
}

fn asked(amounts: Vec<Exact>) -> BTreeMap<String, u64> {
    amounts.into_iter().map(|it| (it.limit, it.amount)).collect()
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
    remarks: Vec<String>,
    #[serde(skip)]
    units: Units,
}

impl Answer for AcquireAnswer {
    fn text(&self, page: &mut Page) {
        let AcquireAnswer { called: Called { entity, resource, waited_ms, .. }, taken, remarks, .. } = self;
        let taken: Vec<String> = taken
            .iter()
            .map(|(limit, it)| format!("{limit} {}", self.units.show_taken(limit, *it)))
            .collect();
        let waited = match waited_ms {
            0 => String::new(),
            _ => format!(", after {}ms", grouped(waited_ms)),
        };
        let remarks = match &remarks[..] {
            [] => String::new(),
            some => format!("; past what is remarked: {}", some.join(", ")),
        };
        let deed = if self.ticket.is_some() { "took" } else { "would take" };
        if let Some(ticket) = &self.ticket {
            page.line(ticket);
        }
        let taken = taken.join(", ");
        page.remark(format_args!("{deed} {taken} of {entity} on {resource}{waited}{remarks}"));
    }
}
