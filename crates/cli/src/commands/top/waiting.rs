//! Waiters as JSON and as text.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tollgate::Tick;
use tollgate::catalog::WaiterRecord;
use tollgate::store::usage::iso;

use crate::duration_text;
use crate::output::{TableCell, TextPage, TextTable, counted, grouped, style};
use crate::views::micros;

/// The wait from which it is highlighted.
const LONG: Duration = Duration::from_secs(60);

/// A waiter.
#[derive(Serialize)]
pub(super) struct WaiterView {
    entity: String,
    resource: String,
    demand: BTreeMap<String, u64>,
    also: BTreeMap<String, BTreeMap<String, u64>>,
    since: String,
    waited_us: u64,
    /// The same in whole milliseconds.
    waited_ms: u64,
    pid: u32,
    host: String,
}

impl WaiterView {
    pub(super) fn of(waiter: &WaiterRecord, now: Tick) -> WaiterView {
        let waited = now.since(waiter.since).to_duration();
        WaiterView {
            entity: waiter.entity.clone(),
            resource: waiter.resource.clone(),
            demand: waiter.demand.clone(),
            also: waiter.also.clone(),
            since: iso(waiter.since),
            waited_us: micros(waited),
            waited_ms: micros(waited) / 1_000,
            pid: waiter.pid,
            host: waiter.host.clone(),
        }
    }

    /// Formats its demand for its resource and others: `rpm 1, tpm 500, and of embeddings rpm 2`.
    fn wants(&self) -> String {
        let amounts = |amounts: &BTreeMap<String, u64>| {
            let each = amounts.iter().map(|(limit, amount)| format!("{limit} {}", grouped(amount)));
            each.collect::<Vec<_>>().join(", ")
        };
        let also = self.also.iter().map(|(resource, wanted)| {
            if wanted.is_empty() {
                return format!("and of {resource}");
            }
            format!("and of {resource} {}", amounts(wanted))
        });
        let own = Some(amounts(&self.demand)).filter(|own| !own.is_empty());
        own.into_iter().chain(also).collect::<Vec<_>>().join(", ")
    }

    fn cells(&self) -> [TableCell; 5] {
        let waited = Duration::from_micros(self.waited_us);
        let shown = duration_text::roughly(waited);
        let waited = if waited >= LONG { TableCell::styled(shown, style::WARN) } else { shown.into() };
        let process = format!("{}@{}", self.pid, self.host);
        [
            TableCell::name(&self.entity),
            TableCell::from(&self.resource),
            waited,
            process.into(),
            self.wants().into(),
        ]
    }
}

/// Adds the waiters that wait longest to a page, if there are any.
pub(super) fn waiting_text(waiting: &[WaiterView], max: usize, is_screen: bool, page: &mut TextPage) {
    if waiting.is_empty() {
        return;
    }
    page.gap();
    let table = TextTable::new(["WAITING", "FOR", "WAITED", "PROCESS", "WANTS"]);
    let table = table.right(2).shorten(1).shorten(3);
    let mut table = if is_screen { table } else { table.wrap(4) };
    for waiter in waiting.iter().take(max) {
        table.row(waiter.cells());
    }
    page.table(&table);
    if waiting.len() > max {
        page.line(format_args!("and {} more", counted(waiting.len() - max, "waiter", "waiters")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_names_every_resource() {
        let mut waiter = WaiterRecord::new("a", "gpt-4", Tick::ZERO, 1, "host");
        let wants = |waiter: &WaiterRecord| WaiterView::of(waiter, Tick::ZERO).wants();
        assert_eq!(wants(&waiter), "");
        waiter.also = [("jobs".into(), BTreeMap::new())].into();
        assert_eq!(wants(&waiter), "and of jobs");
        waiter.demand = [("tpm".into(), 1_500), ("rpm".into(), 1)].into();
        waiter.also = [("jobs".into(), [("slots".into(), 2)].into())].into();
        assert_eq!(wants(&waiter), "rpm 1, tpm 1,500, and of jobs slots 2");
    }
}
