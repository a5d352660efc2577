//! The end of what a ticket stands for.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::limiter::{Ended, Ending};

use crate::args::SettleArgs;
use crate::context::Context;
use crate::demand_text;
use crate::output::{Answer, Output, Page, grouped};
use crate::views::deed;

/// Ends it.
pub(super) fn run(context: &Context, args: SettleArgs) -> Result<Output> {
    let SettleArgs { ticket, amounts, commit: _, cancel } = args;
    let limiter = context.limiter()?;
    let mut lease = limiter.redeem(&ticket)?;
    let reported = lease.report(demand_text::demand(&amounts));
    let ended = if reported.is_err() || context.dry_run {
        // Let go of it without a word to the store: dropped, it would be given back.
        lease.into_ticket()?;
        reported?;
        Ended::Now
    } else {
        lease.end_once(if cancel { Ending::Cancel } else { Ending::Commit }).wait()?
    };
    let ending = match (cancel, amounts.is_empty()) {
        (true, _) => "cancel",
        (false, true) => "commit",
        (false, false) => "settle",
    };
    let used = amounts.into_iter().map(|it| (it.limit, it.amount)).collect();
    let namespace = context.settings.namespace.value.clone();
    let settled_before = ended == Ended::Before;
    let dry_run = context.dry_run;
    Ok(Output::new(SettleAnswer { dry_run, namespace, ticket, ending, used, settled_before }))
}

#[derive(Serialize)]
struct SettleAnswer {
    dry_run: bool,
    namespace: String,
    ticket: String,
    ending: &'static str,
    used: BTreeMap<String, u64>,
    /// Whether somebody was faster, so that nothing was changed.
    settled_before: bool,
}

impl Answer for SettleAnswer {
    fn text(&self, page: &mut Page) {
        match self.ending {
            _ if self.settled_before => page.line("was settled before; nothing changed"),
            "cancel" => page.line(deed(self.dry_run, "cancelled", "cancel")),
            "commit" => page.line(deed(self.dry_run, "committed", "commit")),
            _ => {
                let used = self.used.iter().map(|(limit, amount)| format!("{limit} {}", grouped(amount)));
                let used = used.collect::<Vec<_>>().join(", ");
                page.line(format_args!("{} at {used}", deed(self.dry_run, "settled", "settle")));
            }
        }
    }
}
