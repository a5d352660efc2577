//! What was used, drawn.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::Tick;
use tollgate::catalog::Window;
use tollgate::store::usage::iso;

use super::series::{Series, default_from};
use crate::args::UsagePlotArgs;
use crate::context::Context;
use crate::output::style::{self, paint};
use crate::output::{Answer, Chart, Output, Page, grouped};
use crate::time_text::window_start;
use crate::units::Units;

/// Draws usage.
pub(super) fn plot(context: &Context, args: &UsagePlotArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    let selection = &args.selection;
    let now = catalog.backend().clock().now();
    let until = selection.until.map_or(now, |until| until.seen_from(now));
    let from =
        selection.from.map_or_else(|| default_from(selection.window, until), |from| from.seen_from(now));
    let query = selection.query(now).from(selection.window.start(from));
    let windows = catalog.usage_by_window(query.clone()).wait()?;
    let mut series = Series::of(&windows, selection.window, from, until);
    // The first of them know the units of all.
    let rows = catalog.usage(query).wait()?.items;
    let units = Units::of_used(&catalog, rows.iter().map(|row| (row.entity.as_str(), row.resource.as_str())));
    if let Some(limit) = &args.limit {
        series.limits.retain(|name, _| name == limit);
    }
    Ok(Output::new(PlotAnswer {
        namespace: context.settings.namespace.value.clone(),
        entity: selection.entity.clone(),
        resource: selection.resource.clone(),
        window: selection.window_word(),
        cut: series.is_cut,
        starts: series.starts.iter().map(|at| iso(*at)).collect(),
        used: series.limits,
        name: selection.name(),
        times: series.starts,
        kind: selection.window,
        units,
    }))
}

#[derive(Serialize)]
struct PlotAnswer {
    namespace: String,
    entity: Option<String>,
    resource: Option<String>,
    window: &'static str,
    /// Whether what was used before the first window is left out.
    cut: bool,
    starts: Vec<String>,
    used: BTreeMap<String, Vec<i64>>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    times: Vec<Tick>,
    #[serde(skip)]
    kind: Window,
    #[serde(skip)]
    units: Units,
}

impl Answer for PlotAnswer {
    fn text(&self, page: &mut Page) {
        if self.used.is_empty() {
            return page.remark(format_args!("{} used nothing in that time", self.name));
        }
        let labels: Vec<String> = self.times.iter().map(|at| label(self.kind, *at)).collect();
        for (limit, values) in &self.used {
            let total: i64 = values.iter().fold(0, |sum, value| sum.saturating_add(*value));
            let about = format!("used by {}, {} in all", self.name, self.units.show(limit, total));
            page.gap();
            page.line(format_args!("{} {about}", paint(style::HEADING, limit)));
            page.gap();
            let counted_in = self.units.unit(limit);
            Chart { values, labels: &labels, unit: self.window, counted_in }.render(page);
        }
        if let (Some(first), Some(last)) = (self.times.first(), self.times.last()) {
            page.gap();
            let range = format!(
                "by {}, from {} to {} UTC",
                self.window,
                window_start(self.kind, *first),
                window_start(self.kind, *last)
            );
            page.line(range);
            if self.cut {
                let count = grouped(self.times.len());
                page.line(format_args!(
                    "only the last {count} {}s are drawn; --until goes further back",
                    self.window
                ));
            }
        }
    }
}

/// What stands under a bar: an hour, a day or a month.
fn label(window: Window, at: Tick) -> String {
    let iso = iso(at);
    let part = match window {
        Window::Hour => iso.get(11..16),
        Window::Day => iso.get(5..10),
        Window::Month => iso.get(..7),
    };
    part.unwrap_or(&iso).into()
}
