//! The end of what a ticket stands for.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

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
    if reported.is_err() || context.dry_run {
        // Let go of it without a word to the store: dropped, it would be given back.
        lease.into_ticket()?;
        reported?;
    } else if cancel {
        lease.cancel().wait()?;
    } else {
        lease.commit().wait()?;
    }
    let ending = match (cancel, amounts.is_empty()) {
        (true, _) => "cancel",
        (false, true) => "commit",
        (false, false) => "settle",
    };
    let used = amounts.into_iter().map(|it| (it.limit, it.amount)).collect();
    let namespace = context.settings.namespace.value.clone();
    Ok(Output::new(SettleAnswer { dry_run: context.dry_run, namespace, ticket, ending, used }))
}

#[derive(Serialize)]
struct SettleAnswer {
    dry_run: bool,
    namespace: String,
    ticket: String,
    ending: &'static str,
    used: BTreeMap<String, u64>,
}

impl Answer for SettleAnswer {
    fn text(&self, page: &mut Page) {
        match self.ending {
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
