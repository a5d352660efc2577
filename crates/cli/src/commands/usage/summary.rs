//! What was used in all windows together.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::Tick;
use tollgate::catalog::LimitUsage;
use tollgate::store::usage::iso;

use crate::args::UsageSelection;
use crate::context::Context;
use crate::output::{Answer, Cell, Output, Page, Table, grouped};
use crate::time_text;
use crate::units::Units;

/// Adds usage up.
pub(super) fn summary(context: &Context, selection: &UsageSelection) -> Result<Output> {
    let catalog = context.catalog()?;
    let query = selection.query(catalog.backend().clock().now());
    let summary = catalog.usage_summary(query.clone()).wait()?;
    // The first of them know the units of all.
    let rows = catalog.usage(query).wait()?.items;
    let units = Units::of_used(&catalog, rows.iter().map(|row| (row.entity.as_str(), row.resource.as_str())));
    let shown =
        |at: Option<Tick>| at.map(|at| time_text::window_start(selection.window, at)).unwrap_or_default();
    let shown = [summary.first, summary.last].map(shown);
    let limits = summary.limits.iter().map(|(name, usage)| (name.clone(), LimitView::from(usage)));
    Ok(Output::new(SummaryAnswer {
        namespace: context.settings.namespace.value.clone(),
        entity: selection.entity.clone(),
        resource: selection.resource.clone(),
        window: selection.window_word(),
        windows: summary.windows,
        first: summary.first.map(iso),
        last: summary.last.map(iso),
        calls: summary.events,
        limits: limits.collect(),
        name: selection.name(),
        shown,
        units,
    }))
}

#[derive(Serialize)]
struct SummaryAnswer {
    namespace: String,
    entity: Option<String>,
    resource: Option<String>,
    window: &'static str,
    windows: u64,
    first: Option<String>,
    last: Option<String>,
    calls: u64,
    limits: BTreeMap<String, LimitView>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    shown: [String; 2],
    #[serde(skip)]
    units: Units,
}

#[derive(Serialize)]
struct LimitView {
    total: i64,
    windows: u64,
    min: i64,
    max: i64,
    average: f64,
}

impl From<&LimitUsage> for LimitView {
    fn from(usage: &LimitUsage) -> LimitView {
        let LimitUsage { total, windows, min, max, .. } = *usage;
        LimitView { total, windows, min, max, average: usage.average() }
    }
}

impl Answer for SummaryAnswer {
    fn text(&self, page: &mut Page) {
        if self.windows == 0 {
            return page.remark("nothing was used");
        }
        let [first, last] = &self.shown;
        let windows = format!("{} by {}, from {first} to {last} UTC", grouped(self.windows), self.window);
        page.fields([
            ("used by", Cell::name(&self.name)),
            ("windows", windows.into()),
            ("admitted", grouped(self.calls).into()),
        ]);
        page.gap();
        let mut table = Table::new(["LIMIT", "TOTAL", "LEAST", "MOST", "AVERAGE", "WINDOWS"]);
        table = (1..6).fold(table, Table::right);
        for (name, usage) in &self.limits {
            let LimitView { total, windows, min, max, average } = usage;
            let average = match self.units.unit(name) {
                Some(_) => self.units.show(name, average.round() as i64),
                None => grouped(format!("{average:.1}")),
            };
            let [total, min, max] =
                [total, min, max].map(|amount| Cell::from(self.units.show(name, *amount)));
            table.row([Cell::name(name), total, min, max, average.into(), grouped(windows).into()]);
        }
        page.table(&table);
    }
}
