//! How a batch went.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tollgate_batch::{Histogram, Summary};

use super::closed::ClosedAccounts;
use super::input::BadLines;
use super::price::shown;
use super::reasons::{Reason, Reasons};
use crate::duration_text::roughly;
use crate::output::{Answer, Cell, Page, Table, counted, grouped};

/// How a batch went. The last line of a batch's JSON is one of these.
#[derive(Serialize)]
pub(crate) struct SummaryAnswer {
    event: &'static str,
    /// Requests with a good reply, in this run.
    done: u64,
    failed: u64,
    /// Requests that were not tried to the end: `--resume` goes on with them.
    unfinished: u64,
    /// Requests to which an earlier run had a good reply.
    earlier: u64,
    /// Requests that failed in an earlier run.
    failed_before: u64,
    /// Requests that are not those that their results are of.
    changed: u64,
    /// Requests with the id of another one.
    duplicates: u64,
    /// Lines that are no requests.
    bad_lines: u64,
    calls: u64,
    /// Calls that were told to wait.
    rejected: u64,
    cooldowns: u64,
    parked: u64,
    tokens: u64,
    cost_micros: u64,
    took_ms: u64,
    call_ms: Percentiles,
    request_ms: Percentiles,
    accounts: Vec<AccountLine>,
    /// Why requests have no reply, the most common first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Reason>,
    /// Why it ended before the input did, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    results: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<String>,
}

#[derive(Serialize)]
struct AccountLine {
    name: String,
    calls: u64,
    rejected: u64,
    cooldowns: u64,
    /// Why it was closed, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<String>,
}

#[derive(Serialize)]
struct Percentiles {
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

impl Percentiles {
    fn of(histogram: &Histogram) -> Percentiles {
        let at = |per_mille| ms(histogram.per_mille(per_mille));
        Percentiles { p50: at(500), p90: at(900), p99: at(990), max: ms(histogram.max()) }
    }

    fn row(&self, what: &str) -> [Cell; 5] {
        let time = |ms: u64| Cell::from(roughly(Duration::from_millis(ms)));
        [Cell::name(what), time(self.p50), time(self.p90), time(self.p99), time(self.max)]
    }
}

impl SummaryAnswer {
    pub(crate) fn new(summary: &Summary, reasons: Reasons, results: &Path, bad: &BadLines) -> SummaryAnswer {
        let (progress, counters) = (&summary.progress, &summary.counters);
        let account =
            |(name, counters): &(std::sync::Arc<str>, tollgate_batch::scope::Counters)| AccountLine {
                name: name.to_string(),
                calls: counters.calls,
                rejected: counters.rejected,
                cooldowns: counters.generations,
                closed: None,
            };
        SummaryAnswer {
            event: "summary",
            done: progress.done,
            failed: progress.failed,
            unfinished: progress.unfinished,
            earlier: progress.done_before,
            failed_before: progress.failed_before,
            changed: progress.changed,
            duplicates: progress.duplicates,
            bad_lines: bad.count(),
            calls: counters.calls,
            rejected: counters.rejected,
            cooldowns: counters.generations,
            parked: counters.parked,
            tokens: progress.tokens,
            cost_micros: progress.cost_micros,
            took_ms: ms(summary.took),
            call_ms: Percentiles::of(&summary.calls),
            request_ms: Percentiles::of(&summary.items),
            accounts: summary.scopes.iter().map(account).collect(),
            reasons: reasons.shown(),
            stopped: summary.stopped.as_ref().map(ToString::to_string),
            results: results.display().to_string(),
            errors: (bad.first().is_some()).then(|| bad.path().display().to_string()),
        }
    }

    /// Adds why accounts were closed.
    pub(crate) fn with_closed(mut self, closed: &ClosedAccounts) -> SummaryAnswer {
        for account in &mut self.accounts {
            account.closed = closed.reason(&account.name);
        }
        self
    }

    /// Replaces why it ended early by what the batch itself cannot know.
    pub(crate) fn with_stop_reason(self, reason: Option<String>) -> SummaryAnswer {
        SummaryAnswer { stopped: reason.or(self.stopped), ..self }
    }

    fn wait_share(&self) -> String {
        let tenths = (self.rejected * 1_000).checked_div(self.calls).unwrap_or(0);
        format!("{} ({}.{} %)", grouped(self.rejected), tenths / 10, tenths % 10)
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Answer for SummaryAnswer {
    fn is_line(&self) -> bool {
        true
    }

    fn text(&self, page: &mut Page) {
        let count = |count: u64| Cell::from(grouped(count));
        let mut table = Table::bare().wrap(1);
        let mut row = |name: &str, cell: Cell| table.row([Cell::name(name), cell]);
        row("done", count(self.done));
        if self.earlier > 0 {
            row("done before", count(self.earlier));
        }
        row("failed", count(self.failed));
        if self.failed_before > 0 {
            row(
                "failed before",
                Cell::from(format!("{}; --retry-failed sends them again", grouped(self.failed_before))),
            );
        }
        if self.unfinished > 0 {
            row("left undone", count(self.unfinished));
        }
        if let Some(errors) = &self.errors {
            let parts = [
                ("no requests", self.bad_lines),
                ("duplicate ids", self.duplicates),
                ("changed since", self.changed),
            ];
            for (name, lines) in parts.into_iter().filter(|(_, lines)| *lines > 0) {
                row(name, Cell::from(format!("{} in {errors}", counted(lines, "line", "lines"))));
            }
        }
        row("calls", count(self.calls));
        row("told to wait", Cell::from(self.wait_share()));
        row("cooldowns", count(self.cooldowns));
        row("tokens", count(self.tokens));
        if self.cost_micros > 0 {
            row("cost", Cell::from(shown(self.cost_micros)));
        }
        for AccountLine { name, closed, .. } in &self.accounts {
            if let Some(reason) = closed {
                row("closed", Cell::from(format!("account {name}: {reason}")));
            }
        }
        row("took", Cell::from(roughly(Duration::from_millis(self.took_ms))));
        row("results", Cell::from(self.results.clone()));
        page.table(&table);
        page.gap();
        let mut times =
            Table::new(["TIME", "MEDIAN", "90 %", "99 %", "LONGEST"]).right(1).right(2).right(3).right(4);
        times.row(self.call_ms.row("of a call"));
        times.row(self.request_ms.row("of a request"));
        page.table(&times);
        if self.accounts.len() > 1 {
            page.gap();
            let mut table =
                Table::new(["ACCOUNT", "CALLS", "TOLD TO WAIT", "COOLDOWNS"]).right(1).right(2).right(3);
            for account in &self.accounts {
                let AccountLine { name, calls, rejected, cooldowns, .. } = account;
                table.row([Cell::name(name), count(*calls), count(*rejected), count(*cooldowns)]);
            }
            page.table(&table);
        }
        if !self.reasons.is_empty() {
            page.gap();
            let mut table = Table::new(["REQUESTS", "WITHOUT A REPLY BECAUSE"]).wrap(1);
            for Reason { reason, requests } in &self.reasons {
                table.row([count(*requests), Cell::from(reason.clone())]);
            }
            page.table(&table);
        }
        if let Some(why) = &self.stopped {
            page.remark(format!("it ended early: {why}; --resume goes on"));
        }
    }
}
