//! `tollgate usage summary`: the sum of usage.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::Tick;
use tollgate::catalog::LimitUsage;
use tollgate::store::usage::iso;

use crate::args::UsageSelection;
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, grouped};
use crate::time_text;
use crate::units::Units;

/// Sums usage.
pub(super) fn summary(context: &Context, selection: &UsageSelection) -> Result<Output> {
    let catalog = context.catalog()?;
    let query = selection.query(catalog.backend().clock().now());
    let summary = catalog.usage_summary(query.clone()).wait()?;
    // The first rows are enough to learn the units.
    let rows = catalog.usage(query).wait()?.items;
    let units = Units::of_used(&catalog, rows.iter().map(|row| (row.entity.as_str(), row.resource.as_str())));
    let shown =
        |at: Option<Tick>| at.map(|at| time_text::window_start(selection.window, at)).unwrap_or_default();
    let shown = [summary.first, summary.last].map(shown);
    let limits = summary.limits.iter().map(|(name, usage)| (name.clone(), UsedLimitView::from(usage)));
    Ok(Output::new(UsageSummaryAnswer {
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
struct UsageSummaryAnswer {
    namespace: String,
    entity: Option<String>,
    resource: Option<String>,
    window: &'static str,
    windows: u64,
    first: Option<String>,
    last: Option<String>,
    calls: u64,
    limits: BTreeMap<String, UsedLimitView>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    shown: [String; 2],
    #[serde(skip)]
    units: Units,
}

#[derive(Serialize)]
struct UsedLimitView {
    total: i64,
    windows: u64,
    min: i64,
    max: i64,
    average: f64,
}

impl From<&LimitUsage> for UsedLimitView {
    fn from(usage: &LimitUsage) -> UsedLimitView {
        let LimitUsage { total, windows, min, max, .. } = *usage;
        UsedLimitView { total, windows, min, max, average: usage.average() }
    }
}

impl Answer for UsageSummaryAnswer {
    fn text(&self, page: &mut TextPage) {
        if self.windows == 0 {
            return page.remark("no usage");
        }
        let [first, last] = &self.shown;
        let windows = format!("{} by {}, from {first} to {last} UTC", grouped(self.windows), self.window);
        page.fields([
            ("used by", TableCell::name(&self.name)),
            ("windows", windows.into()),
            ("admitted", grouped(self.calls).into()),
        ]);
        page.gap();
        let mut table = TextTable::new(["LIMIT", "TOTAL", "MIN", "MAX", "AVERAGE", "WINDOWS"]);
        table = (1..6).fold(table, TextTable::right);
        for (name, usage) in &self.limits {
            let UsedLimitView { total, windows, min, max, average } = usage;
            let average = match self.units.unit(name) {
                Some(_) => self.units.show(name, average.round() as i64),
                None => grouped(format!("{average:.1}")),
            };
            let [total, min, max] =
                [total, min, max].map(|amount| TableCell::from(self.units.show(name, *amount)));
            table.row([TableCell::name(name), total, min, max, average.into(), grouped(windows).into()]);
        }
        page.table(&table);
    }
}
