//! `tollgate settle`: ends the lease of a ticket.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::Limiter;
use tollgate::catalog::{Namespace, NamespaceStatus};
use tollgate::limiter::{LeaseEnd, LimiterLease, TicketEnd, TicketError};

use crate::args::SettleArgs;
use crate::context::Context;
use crate::demand_text::{self, Amount, Exact};
use crate::exit::UsageError;
use crate::output::{Answer, Output, TextPage};
use crate::units::Units;
use crate::views::action_label;

/// Ends the lease of a ticket.
pub(super) fn run(context: &Context, args: SettleArgs) -> Result<Output> {
    let SettleArgs { ticket, amounts, commit: _, cancel } = args;
    let limiter = context.limiter()?;
    let mut lease = limiter.redeem(&ticket).wait().map_err(|why| with_namespace(context, &ticket, why))?;
    let exact = counted(&limiter, &lease, &amounts);
    let reported = exact.and_then(|(exact, units)| {
        lease.report(demand_text::demand(&exact))?;
        Ok((exact, units))
    });
    let ended = if reported.is_err() || context.dry_run {
        // Dropping the lease of a ticket does not end it.
        drop(lease);
        TicketEnd::Now
    } else {
        lease.end_once(if cancel { LeaseEnd::Cancel } else { LeaseEnd::Commit }).wait()?
    };
    let ending = match (cancel, amounts.is_empty()) {
        (true, _) => "cancel",
        (false, true) => "commit",
        (false, false) => "settle",
    };
    let (used, units) = reported?;
    let used = used.into_iter().map(|exact| (exact.limit, exact.amount)).collect();
    let namespace = context.settings.namespace.value.clone();
    let dry_run = context.dry_run;
    let settled_before = ended == TicketEnd::Before;
    Ok(Output::new(SettleAnswer { dry_run, namespace, ticket, ending, used, units, settled_before }))
}

/// Converts the used amounts to the units of the limits, and returns these units.
fn counted(limiter: &Limiter, lease: &LimiterLease<'_>, amounts: &[Amount]) -> Result<(Vec<Exact>, Units)> {
    let units = match lease.called() {
        Some((entity, resource)) if !amounts.is_empty() => {
            Units::of_bucket(limiter.catalog(), entity, resource)?
        }
        _ => Units::default(),
    };
    Ok((units.exact(amounts)?, units))
}

/// Adds the namespace of the ticket to an error, if it is in this store.
fn with_namespace(context: &Context, ticket: &str, why: TicketError) -> anyhow::Error {
    let TicketError::NotGenuine(here) = &why else { return why.into() };
    let message = match context.namespace_of(ticket) {
        Ok(Some(Namespace { name, status: NamespaceStatus::Active, .. })) => {
            format!("the ticket is of namespace {name}, not of {here}; settle it with -N {name}")
        }
        Ok(Some(Namespace { name, .. })) => format!("the ticket is of namespace {name}, which was deleted"),
        // A forged ticket has no namespace, and the user may have no permission to read others.
        Ok(None) | Err(_) => return why.into(),
    };
    UsageError(format!("{message}; nothing was changed")).into()
}

#[derive(Serialize)]
struct SettleAnswer {
    dry_run: bool,
    namespace: String,
    ticket: String,
    ending: &'static str,
    used: BTreeMap<String, u64>,
    #[serde(skip)]
    units: Units,
    /// Whether another caller settled it first, so that nothing was changed.
    settled_before: bool,
}

impl Answer for SettleAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        match self.ending {
            _ if self.settled_before => page.line("already settled; nothing changed"),
            "cancel" => page.line(action_label(self.dry_run, "cancelled", "cancel")),
            "commit" => page.line(action_label(self.dry_run, "committed", "commit")),
            _ => {
                let shown = |(limit, amount): (&String, &u64)| {
                    format!("{limit} {}", self.units.show_taken(limit, *amount))
                };
                let used = self.used.iter().map(shown).collect::<Vec<_>>().join(", ");
                page.line(format_args!("{} at {used}", action_label(self.dry_run, "settled", "settle")));
            }
        }
    }
}
