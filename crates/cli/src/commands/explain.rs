//! `tollgate explain`: which limit would deny a call, and when it would be admitted.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::Catalog;
use tollgate::limiter::ChainStatus;
use tollgate::store::usage::iso;
use tollgate::{Limit, Limits, Ready};

use super::call::{one_of_each, reword};
use crate::args::{CallArgs, ExplainArgs};
use crate::context::Context;
use crate::demand_text::{self, Amount};
use crate::duration_text;
use crate::exit::{Exit, UsageError};
use crate::output::style::{self, paint};
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, grouped};
use crate::units::Units;
use crate::views::{DemandStatusView, DenialView, LimitStatusView};

/// Evaluates a call without acquiring anything.
pub(super) fn run(context: &Context, args: ExplainArgs) -> Result<Output> {
    let CallArgs { entity, resource, amounts } = args.call;
    let limiter = context.limiter()?;
    let units = Units::of_call(limiter.catalog(), &entity, &resource)?;
    // The default is that of `tollgate run`.
    let wanted = |resource: &str, amounts: Vec<Amount>| {
        if amounts.is_empty() { one_of_each(&limiter, &entity, resource) } else { Ok(amounts) }
    };
    let mut asked = vec![(resource.clone(), units.exact(&wanted(&resource, amounts)?)?)];
    for (resource, amounts) in args.also.resources().map_err(UsageError)? {
        let amounts = wanted(&resource, amounts)?;
        let amounts = Units::of_call(limiter.catalog(), &entity, &resource)?.exact(&amounts)?;
        asked.push((resource, amounts));
    }
    let demands = asked.iter().map(|(resource, amounts)| (resource.as_str(), demand_text::demand(amounts)));
    let status = limiter.check_availability_of_all(&entity, demands.collect()).wait();
    let status = status.map_err(|why| reword(why, &units))?;
    let exit = if status.passes() { Exit::OK } else { Exit::DENIED };
    let denial = DenialView::of(&status);
    let answer = ExplainAnswer {
        namespace: context.settings.namespace.value.clone(),
        entity,
        resource,
        passes: status.passes(),
        passes_at: match status.ready() {
            Ready::At(tick) if denial.retry_after_us.is_some() => Some(iso(tick)),
            _ => None,
        },
        held_ahead: prefetch_bounds(limiter.catalog(), &status),
        denial,
    };
    Ok(Output::new(answer).with_exit(exit))
}

#[derive(Serialize)]
struct ExplainAnswer {
    namespace: String,
    entity: String,
    resource: String,
    passes: bool,
    /// `null` if it passes now, or if that depends on other leases being released.
    passes_at: Option<String>,
    /// What one process may prefetch, so that others cannot use it; `null` if the store prefetches nothing.
    held_ahead: Option<BTreeMap<String, u64>>,
    #[serde(flatten)]
    denial: DenialView,
}

impl Answer for ExplainAnswer {
    fn text(&self, page: &mut TextPage) {
        if self.passes {
            page.line(paint(style::GOOD, "would be admitted now"));
        } else {
            page.sentence(format_args!("{} {}", paint(style::BAD, "would be denied:"), self.denial.reason));
            page.sentence(format_args!("would be admitted {}", self.when()));
        }
        let resources: BTreeSet<&str> =
            self.denial.buckets.iter().map(|bucket| bucket.resource.as_str()).collect();
        for bucket in self.denial.buckets.chunk_by(|one, two| one.resource == two.resource) {
            match bucket {
                [first, ..] if resources.len() > 1 => page.heading(format_args!("For {}", first.resource)),
                _ => page.gap(),
            }
            page.table(&table_of(bucket));
        }
        if let Some(held_ahead) = &self.held_ahead {
            let amounts: Vec<String> =
                held_ahead.iter().map(|(limit, most)| format!("{limit} {}", grouped(most))).collect();
            page.gap();
            page.line(format_args!("each process may prefetch from a bucket: {}", amounts.join(", ")));
        }
    }
}

/// Returns the most that one process may prefetch from the entity's own bucket, of each limit.
fn prefetch_bounds(catalog: &Catalog, status: &ChainStatus) -> Option<BTreeMap<String, u64>> {
    let own = status.parts.first()?;
    let limits: Vec<Limit> = own.denial.statuses().map(|status| status.limit().clone()).collect();
    let limits = Limits::new(limits).ok()?;
    let most = catalog.backend().prefetch_bounds(&limits)?;
    Some(limits.iter().map(|limit| limit.name().to_string()).zip(most).collect())
}

impl ExplainAnswer {
    fn when(&self) -> String {
        match (self.denial.retry_after_us, &self.passes_at) {
            (Some(wait), Some(at)) => {
                let wait = duration_text::roughly(std::time::Duration::from_micros(wait));
                format!("in {wait}, at {at}, if no other call comes first")
            }
            _ => self.denial.unknown_text(),
        }
    }
}

/// Returns a table of every limit of every bucket.
fn table_of(buckets: &[DemandStatusView]) -> TextTable {
    let headings = ["", "ENTITY", "LIMIT", "ASKED", "AVAILABLE", "OF", "ADMITS", "LIMITS FROM"];
    let mut table = TextTable::new(headings).right(3).right(4).right(5).wrap(7).hide_empty(0);
    for DemandStatusView { entity, limits, level, .. } in buckets {
        let mut first = Some((TableCell::name(entity), TableCell::from(level)));
        for limit in limits {
            let (entity, level) = first.take().unwrap_or_else(|| ("".into(), "".into()));
            table.row(cells(entity, limit, level));
        }
    }
    table
}

fn cells(entity: TableCell, limit: &LimitStatusView, level: TableCell) -> [TableCell; 8] {
    let mark = if limit.decides { TableCell::styled("→", style::BAD) } else { "".into() };
    [
        mark,
        entity,
        TableCell::name(&limit.name),
        limit.requested(),
        limit.available(),
        limit.capacity(),
        limit.ready(),
        level,
    ]
}
