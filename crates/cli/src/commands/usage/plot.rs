//! `tollgate usage plot`.

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
use crate::output::{Answer, Chart, Output, TableCell, TextPage, TextTable, grouped, line_of};
use crate::time_text::window_start;
use crate::units::Units;

/// The minimum number of windows.
const WINDOWS_MIN: usize = 6;

/// The width of the columns beside a sparkline.
const LINE_ASIDE: usize = 44;

/// Plots usage.
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
    // The first rows are enough to learn the units.
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
        limit: args.limit.clone(),
        is_from_given: selection.from.is_some(),
        is_until_given: selection.until.is_some(),
    }))
}

#[derive(Serialize)]
struct PlotAnswer {
    namespace: String,
    entity: Option<String>,
    resource: Option<String>,
    window: &'static str,
    /// Whether usage before the first window is left out.
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
    /// The limit that was asked for.
    #[serde(skip)]
    limit: Option<String>,
    /// Whether `--from` was given.
    #[serde(skip)]
    is_from_given: bool,
    /// Whether `--until` was given.
    #[serde(skip)]
    is_until_given: bool,
}

impl Answer for PlotAnswer {
    fn text(&self, page: &mut TextPage) {
        if self.used.is_empty() {
            return page.remark(self.nothing());
        }
        let (times, used) = self.since_first_use();
        match used.iter().next() {
            Some((limit, values)) if used.len() == 1 => self.chart(page, limit, values, times),
            _ => self.lines(page, &used, times.len()),
        }
        if let (Some(first), Some(last)) = (times.first(), times.last()) {
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
                    "only the last {count} {}s are shown; --until selects earlier ones",
                    self.window
                ));
            }
        }
    }
}

impl PlotAnswer {
    /// Says what was not used, and when.
    fn nothing(&self) -> String {
        let by = match (&self.entity, &self.resource) {
            (None, None) => String::new(),
            _ => format!(" by {}", self.name),
        };
        let limit = self.limit.as_ref().map(|limit| format!(" of {limit}")).unwrap_or_default();
        let [first, last] = [self.times.first(), self.times.last()]
            .map(|at| at.map(|at| window_start(self.kind, *at)).unwrap_or_default());
        let when = match (self.is_from_given, self.is_until_given) {
            (_, true) => format!("from {first} to {last} UTC"),
            (true, false) => format!("since {first} UTC"),
            (false, false) => format!("since {first} UTC; --from selects an earlier time"),
        };
        format!("no usage{limit}{by} {when}")
    }

    /// Returns the windows since the first usage, and the usage of each limit in each; all windows if `--from` was given.
    fn since_first_use(&self) -> (&[Tick], BTreeMap<&str, &[i64]>) {
        let unused = |values: &Vec<i64>| values.iter().take_while(|value| **value == 0).count();
        let first = self.used.values().map(unused).min().filter(|_| !self.is_from_given).unwrap_or(0);
        // A single bar has no visible time axis.
        let first = first.min(self.times.len().saturating_sub(WINDOWS_MIN));
        let used = self.used.iter().map(|(limit, values)| (limit.as_str(), &values[first..]));
        (&self.times[first..], used.collect())
    }

    fn chart(&self, page: &mut TextPage, limit: &str, values: &[i64], times: &[Tick]) {
        let labels: Vec<String> = times.iter().map(|at| label(self.kind, *at)).collect();
        let about = format!("used by {}, {} in total", self.name, self.units.show(limit, sum(values)));
        page.line(format_args!("{} {about}", paint(style::HEADING, limit)));
        page.gap();
        let counted_in = self.units.unit(limit);
        Chart { values, labels: &labels, unit: self.window, counted_in }.render(page);
    }

    /// Writes a sparkline for each limit, because a chart of each would not fit a screen.
    fn lines(&self, page: &mut TextPage, used: &BTreeMap<&str, &[i64]>, windows: usize) {
        page.line(format_args!("used by {}; --limit NAME plots one limit larger", self.name));
        page.gap();
        let heading = format!("EACH {}", self.window.to_uppercase());
        let mut table = TextTable::new(["LIMIT", &heading, "MAX", "TOTAL"]).right(2).right(3);
        let room = page.width().saturating_sub(LINE_ASIDE).max(1);
        for (limit, values) in used {
            let most = values.iter().copied().max().unwrap_or(0);
            let line = TableCell::styled(line_of(values, room), style::NAME);
            let [most, all] =
                [most, sum(values)].map(|amount| TableCell::from(self.units.show(limit, amount)));
            table.row([TableCell::name(limit), line, most, all]);
        }
        page.table(&table);
        let merged = windows.div_ceil(room);
        if merged > 1 {
            page.line(format_args!("each column is {merged} {}s", self.window));
        }
    }
}

fn sum(values: &[i64]) -> i64 {
    values.iter().fold(0, |sum, value| sum.saturating_add(*value))
}

/// Returns the label of a bar: an hour, a day or a month.
fn label(window: Window, at: Tick) -> String {
    let iso = iso(at);
    let part = match window {
        Window::Hour => iso.get(11..16),
        Window::Day => iso.get(5..10),
        Window::Month => iso.get(..7),
    };
    part.unwrap_or(&iso).into()
}
