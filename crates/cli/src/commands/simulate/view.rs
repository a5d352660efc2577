//! The results of a replay as JSON and as text.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tollgate::store::usage::iso;

use super::replay::Replayed;
use super::tally::{SimCounts, SimTally, Wait, hour_start};
use crate::args::SimulateArgs;
use crate::duration_text::roughly;
use crate::output::{Answer, Chart, TableCell, TextPage, TextTable, counted, grouped, style};
use crate::percent_text::Percent;

/// No chart is drawn for more hours than this.
const HOURS_MAX: u64 = 100_000;

#[derive(Serialize)]
pub(super) struct SimulateAnswer {
    log: String,
    limits: String,
    wait: bool,
    calls: u64,
    admitted: u64,
    denied: u64,
    failed: u64,
    malformed: u64,
    impossible: u64,
    timed_out: u64,
    out_of_order: u64,
    first: Option<String>,
    last: Option<String>,
    waits: Option<WaitsView>,
    by_limit: BTreeMap<String, u64>,
    entities: usize,
    by_entity: Vec<SimEntityView>,
    by_hour: Vec<HourView>,
    worst_waits: Vec<WaitView>,
    failures: Vec<FailureView>,
    /// Whether a larger share is denied than `--max-denied` allows.
    pub(super) exceeds_max_denied: bool,
    #[serde(skip)]
    max_denied: Option<Percent>,
    #[serde(skip)]
    hours: Vec<(u64, u64)>,
}

/// The waits of admitted calls.
#[derive(Serialize)]
struct WaitsView {
    waited: usize,
    total_us: u64,
    median_us: u64,
    p95_us: u64,
    max_us: u64,
}

#[derive(Serialize)]
struct SimEntityView {
    entity: String,
    calls: u64,
    admitted: u64,
    denied: u64,
    failed: u64,
}

#[derive(Serialize)]
struct HourView {
    start: String,
    calls: u64,
    denied: u64,
}

#[derive(Serialize)]
struct WaitView {
    wait_us: u64,
    time: String,
    entity: String,
    resource: String,
    limit: Option<String>,
    line: u64,
}

#[derive(Serialize)]
struct FailureView {
    kind: &'static str,
    calls: u64,
    first_line: u64,
    first: String,
}

impl SimulateAnswer {
    pub(super) fn new(
        args: &SimulateArgs,
        limits: String,
        malformed: u64,
        replayed: &Replayed,
    ) -> SimulateAnswer {
        let tally = &replayed.tally;
        let SimCounts { calls, admitted, denied, failed } = tally.all;
        let hour = |(hour, counts): (&u64, &SimCounts)| HourView {
            start: iso(hour_start(*hour)),
            calls: counts.calls,
            denied: counts.denied,
        };
        SimulateAnswer {
            log: args.log.display().to_string(),
            limits,
            wait: args.wait,
            calls,
            admitted,
            denied,
            failed,
            malformed,
            impossible: tally.impossible,
            timed_out: tally.timed_out,
            out_of_order: tally.out_of_order,
            first: tally.first.map(iso),
            last: tally.last.map(iso),
            waits: args.wait.then(|| WaitsView::of(&tally.waits)),
            by_limit: tally.limits.iter().map(|(name, count)| (name.clone(), *count)).collect(),
            entities: tally.entities.iter().filter(|counts| counts.calls > 0).count(),
            by_entity: most_denied(replayed, args.max),
            by_hour: tally.hours.iter().map(hour).collect(),
            worst_waits: tally.worst().into_iter().map(|wait| WaitView::of(wait, replayed)).collect(),
            failures: failures(tally),
            exceeds_max_denied: args.max_denied.is_some_and(|max| max.is_exceeded(denied, calls)),
            max_denied: args.max_denied,
            hours: tally.hours.iter().map(|(hour, counts)| (*hour, counts.denied)).collect(),
        }
    }

    fn share(&self, part: u64) -> String {
        let percent = part as f64 * 100.0 / self.calls.max(1) as f64;
        format!("{} ({percent:.1}%)", grouped(part))
    }

    fn summary(&self, page: &mut TextPage) {
        let span = match (&self.first, &self.last) {
            (Some(first), Some(last)) => format!(" from {first} to {last}"),
            _ => String::new(),
        };
        let calls = format!("{}{span}", grouped(self.calls));
        let mut table = TextTable::bare().wrap(1);
        let mut row =
            |name: &str, value: TableCell| table.row([TableCell::styled(name, style::HEADING), value]);
        row("log", TableCell::name(&self.log));
        row("limits", self.limits.clone().into());
        row("calls", calls.into());
        row("admitted", TableCell::styled(self.share(self.admitted), style::GOOD));
        let bad = if self.denied > 0 { style::BAD } else { style::GOOD };
        let over = self.max_denied.filter(|_| self.exceeds_max_denied);
        let over = over.map(|max| format!(", more than the {} of --max-denied", max.shown()));
        let denied = self.share(self.denied) + &over.unwrap_or_default();
        row("denied", TableCell::styled(denied, bad));
        if self.impossible > 0 {
            row("", format!("{} of them ask for more than the capacity", grouped(self.impossible)).into());
        }
        if self.timed_out > 0 {
            row("", format!("{} of them timed out", grouped(self.timed_out)).into());
        }
        if let Some(waits) = &self.waits {
            row("waited", waits.text(self.calls).into());
        }
        for FailureView { kind, calls, first_line, first } in &self.failures {
            let reason = reason(kind);
            let text = format!("{} {reason}; first in line {first_line}: {first}", grouped(calls));
            row("failed", TableCell::styled(text, style::WARN));
        }
        if self.malformed > 0 {
            row("invalid", TableCell::styled(counted_lines(self.malformed), style::WARN));
        }
        if self.out_of_order > 0 {
            row("out of order", format!("{} with an earlier time", counted_lines(self.out_of_order)).into());
        }
        page.table(&table);
    }

    fn denials(&self, page: &mut TextPage) {
        page.heading("Denied by limit");
        let mut table = TextTable::new(["LIMIT", "DENIED"]).right(1);
        let mut limits: Vec<(&String, &u64)> = self.by_limit.iter().collect();
        limits.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        for (name, count) in limits {
            table.row([TableCell::name(name), grouped(count).into()]);
        }
        page.table_or_line(&table, "none: all timed out behind other waiters");
        page.heading("Denied by entity");
        let mut table = TextTable::new(["ENTITY", "CALLS", "DENIED", "SHARE"]).right(1).right(2).right(3);
        for SimEntityView { entity, calls, denied, .. } in &self.by_entity {
            if *denied == 0 {
                continue;
            }
            let share = format!("{:.1}%", *denied as f64 * 100.0 / (*calls).max(1) as f64);
            table.row([TableCell::name(entity), grouped(calls).into(), grouped(denied).into(), share.into()]);
        }
        page.table(&table);
    }

    fn chart(&self, page: &mut TextPage) {
        let (Some((first, _)), Some((last, _))) = (self.hours.first(), self.hours.last()) else { return };
        if first == last || last - first >= HOURS_MAX {
            return;
        }
        let denied: BTreeMap<u64, u64> = self.hours.iter().copied().collect();
        let value = |hour: u64| i64::try_from(denied.get(&hour).copied().unwrap_or(0)).unwrap_or(i64::MAX);
        let values: Vec<i64> = (*first..=*last).map(value).collect();
        let label = |hour: u64| iso(hour_start(hour)).get(5..16).unwrap_or_default().replace('T', " ");
        let labels: Vec<String> = (*first..=*last).map(label).collect();
        page.heading("Denied by hour, UTC");
        Chart { values: &values, labels: &labels, unit: "hour", counted_in: None }.render(page);
    }

    fn worst(&self, page: &mut TextPage) {
        if self.worst_waits.is_empty() {
            return;
        }
        page.heading(if self.wait { "Longest waits" } else { "Longest waits until admission" });
        let mut table = TextTable::new(["WAIT", "ENTITY", "RESOURCE", "LIMIT", "TIME", "LINE"])
            .right(0)
            .right(5)
            .shorten(2)
            .shorten(3)
            .hide_empty(3);
        for WaitView { wait_us, time, entity, resource, limit, line } in &self.worst_waits {
            table.row([
                roughly(Duration::from_micros(*wait_us)).into(),
                TableCell::name(entity),
                resource.into(),
                limit.clone().unwrap_or_default().into(),
                TableCell::from(time),
                TableCell::from(line),
            ]);
        }
        page.table(&table);
    }
}

impl Answer for SimulateAnswer {
    fn text(&self, page: &mut TextPage) {
        self.summary(page);
        if self.denied > 0 {
            self.denials(page);
            self.chart(page);
        }
        self.worst(page);
    }
}

impl WaitsView {
    fn of(waits: &[u64]) -> WaitsView {
        let mut sorted = waits.to_vec();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(index).copied().unwrap_or(0)
        };
        WaitsView {
            waited: sorted.len(),
            total_us: sorted.iter().fold(0, |sum: u64, wait| sum.saturating_add(*wait)),
            median_us: at(50),
            p95_us: at(95),
            max_us: at(100),
        }
    }

    fn text(&self, calls: u64) -> String {
        if self.waited == 0 {
            return "none".into();
        }
        let [total, median, p95, max] = [self.total_us, self.median_us, self.p95_us, self.max_us]
            .map(|micros| roughly(Duration::from_micros(micros)));
        let percent = self.waited as f64 * 100.0 / calls.max(1) as f64;
        let waited = grouped(self.waited);
        format!(
            "{waited} ({percent:.1}%), half of them up to {median}, 95% up to {p95}, longest {max}, {total} in all"
        )
    }
}

impl WaitView {
    fn of(wait: &Wait, replayed: &Replayed) -> WaitView {
        WaitView {
            wait_us: wait.wait.as_micros(),
            time: iso(wait.at),
            entity: replayed.entities.name(wait.entity).into(),
            resource: replayed.resources.name(wait.resource).into(),
            limit: wait.limit.clone(),
            line: wait.line.0,
        }
    }
}

fn most_denied(replayed: &Replayed, max: usize) -> Vec<SimEntityView> {
    let counts = &replayed.tally.entities;
    let mut entities: Vec<(&str, &SimCounts)> =
        (0..).zip(counts).map(|(number, counts)| (replayed.entities.name(number), counts)).collect();
    entities.retain(|(_, counts)| counts.calls > 0);
    entities.sort_by_key(|(name, counts)| (std::cmp::Reverse((counts.denied, counts.calls)), *name));
    let view = |(entity, counts): (&str, &SimCounts)| {
        let SimCounts { calls, admitted, denied, failed } = *counts;
        SimEntityView { entity: entity.to_owned(), calls, admitted, denied, failed }
    };
    entities.into_iter().take(max).map(view).collect()
}

fn failures(tally: &SimTally) -> Vec<FailureView> {
    let view = |(kind, failure): (&&'static str, &super::tally::SimFailure)| FailureView {
        kind,
        calls: failure.count,
        first_line: failure.line,
        first: failure.why.clone(),
    };
    tally.failures.iter().map(view).collect()
}

fn reason(kind: &str) -> &'static str {
    match kind {
        "no_limits" => "without limits",
        "empty_demand" => "with no amount of any limit",
        "bad_demand" => "with an invalid demand",
        "bad_name" => "with an invalid name",
        _ => "for other reasons",
    }
}

fn counted_lines(lines: u64) -> String {
    counted(usize::try_from(lines).unwrap_or(usize::MAX), "line", "lines")
}
