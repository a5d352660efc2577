//! The summary of a batch.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tollgate_batch::pace::PaceRate;
use tollgate_batch::{Histogram, ScopeStatus, Summary};

use super::input::BadLines;
use super::price::{PriceSource, Prices, shown};
use super::progress::share;
use super::reasons::{CountedReason, Reasons};
use crate::duration_text::roughly;
use crate::output::{Answer, TableCell, TextPage, TextTable, counted, grouped};

/// The summary of a batch, which is the last line of its JSON output.
#[derive(Serialize)]
pub(crate) struct BatchSummaryAnswer {
    event: &'static str,
    /// Requests that succeeded in this run.
    done: u64,
    failed: u64,
    /// Requests without a result: `--resume` continues with them.
    unfinished: u64,
    /// Requests that succeeded in an earlier run.
    earlier: u64,
    /// Requests that failed in an earlier run.
    failed_before: u64,
    /// Requests that were changed since their result.
    changed: u64,
    /// Requests with a duplicate id.
    duplicates: u64,
    /// Invalid lines.
    bad_lines: u64,
    calls: u64,
    /// Calls that the provider throttled.
    rejected: u64,
    cooldowns: u64,
    /// Calls that met a cooldown.
    participants: u64,
    parked: u64,
    /// Times a parked request was called again.
    redistributed: u64,
    /// The total time that accounts were paused by cooldowns.
    paused_ms: u64,
    tokens: u64,
    cost_micros: u64,
    /// The sources of the prices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prices: Vec<PriceSource>,
    /// Whether a model has no price, so that the cost is too low.
    has_unpriced: bool,
    took_ms: u64,
    call_ms: Percentiles,
    request_ms: Percentiles,
    /// Accounts that were closed.
    closed_accounts: u64,
    accounts: Vec<AccountLine>,
    /// Why requests have no output, the most common first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<CountedReason>,
    /// Why the batch ended early, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    results: String,
    /// The journal that the results were written from, if it is another file.
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<String>,
    /// Why the results could not be written from the journal, if that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    unwritten: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<String>,
}

#[derive(Serialize)]
struct AccountLine {
    name: String,
    calls: u64,
    rejected: u64,
    cooldowns: u64,
    /// How many calls met each of the last cooldowns.
    participants: Vec<u64>,
    parked: u64,
    redistributed: u64,
    paused_ms: u64,
    /// Limits that were learned from throttled calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    learned_calls_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    learned_tokens_per_second: Option<f64>,
    /// Why it was closed, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<String>,
}

impl AccountLine {
    fn of(scope: &ScopeStatus) -> AccountLine {
        let rate = |rate: Option<PaceRate>| rate.map(|rate| rate.millionths() as f64 / 1e6);
        AccountLine {
            name: scope.name.to_string(),
            calls: scope.counters.calls,
            rejected: scope.counters.rejected,
            cooldowns: scope.counters.generations,
            participants: scope.counters.participants.clone(),
            parked: scope.counters.parked,
            redistributed: scope.counters.handed_out,
            paused_ms: ms(scope.paused),
            learned_calls_per_second: rate(scope.learned.calls),
            learned_tokens_per_second: rate(scope.learned.tokens),
            closed: scope.closed.as_ref().map(|closed| closed.reason.to_string()),
        }
    }
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

    fn row(&self, what: &str) -> [TableCell; 5] {
        let time = |ms: u64| TableCell::from(roughly(Duration::from_millis(ms)));
        [TableCell::name(what), time(self.p50), time(self.p90), time(self.p99), time(self.max)]
    }
}

impl BatchSummaryAnswer {
    pub(crate) fn new(
        summary: &Summary,
        reasons: Reasons,
        results: &Path,
        bad: &BadLines,
    ) -> BatchSummaryAnswer {
        let Summary { progress, counters, .. } = summary;
        BatchSummaryAnswer {
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
            participants: summary.scopes.iter().map(|scope| scope.participants).sum(),
            parked: counters.parked,
            redistributed: counters.handed_out,
            paused_ms: summary.scopes.iter().map(|scope| ms(scope.paused)).sum(),
            tokens: progress.tokens,
            cost_micros: progress.cost_micros,
            prices: Vec::new(),
            has_unpriced: false,
            took_ms: ms(summary.took),
            call_ms: Percentiles::of(&summary.calls),
            request_ms: Percentiles::of(&summary.items),
            closed_accounts: summary.scopes.iter().filter(|scope| scope.closed.is_some()).count() as u64,
            accounts: summary.scopes.iter().map(AccountLine::of).collect(),
            reasons: reasons.shown(),
            stopped: summary.stopped.as_ref().map(ToString::to_string),
            results: results.display().to_string(),
            journal: None,
            unwritten: None,
            errors: (bad.first().is_some()).then(|| bad.path().display().to_string()),
        }
    }

    /// Sets the sources of the prices.
    pub(crate) fn with_prices(self, prices: &Prices) -> BatchSummaryAnswer {
        BatchSummaryAnswer { prices: prices.used(), has_unpriced: prices.has_missed(), ..self }
    }

    /// Sets the journal, which may be the results themselves, and why these could not be written from it.
    pub(crate) fn with_journal(self, journal: &Path, unwritten: Option<String>) -> BatchSummaryAnswer {
        let journal = Some(journal.display().to_string()).filter(|journal| *journal != self.results);
        BatchSummaryAnswer { journal, unwritten, ..self }
    }

    /// Replaces the reason why the batch ended early by one that the batch itself cannot know.
    pub(crate) fn with_stop_reason(self, reason: Option<String>) -> BatchSummaryAnswer {
        BatchSummaryAnswer { stopped: reason.or(self.stopped), ..self }
    }

    /// Formats the cost, with the date of the prices.
    fn cost(&self) -> String {
        let sources: Vec<String> = self.prices.iter().map(ToString::to_string).collect();
        if sources.is_empty() {
            return shown(self.cost_micros);
        }
        let rest = if self.has_unpriced { "; other models have no price" } else { "" };
        format!("{} by prices {}{rest}", shown(self.cost_micros), sources.join("; "))
    }

    fn throttled_share(&self) -> String {
        format!("{} ({})", grouped(self.rejected), share(self.rejected, self.calls))
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Answer for BatchSummaryAnswer {
    fn is_line(&self) -> bool {
        true
    }

    fn text(&self, page: &mut TextPage) {
        let count = |count: u64| TableCell::from(grouped(count));
        let mut table = TextTable::bare().wrap(1);
        let mut row = |name: &str, cell: TableCell| table.row([TableCell::name(name), cell]);
        row("done", count(self.done));
        if self.earlier > 0 {
            row("done before", count(self.earlier));
        }
        row("failed", count(self.failed));
        if self.failed_before > 0 {
            row(
                "failed before",
                TableCell::from(format!("{}; --retry-failed sends them again", grouped(self.failed_before))),
            );
        }
        if self.unfinished > 0 {
            row("unfinished", TableCell::from(format!("{}; --resume sends them", grouped(self.unfinished))));
        }
        if let Some(errors) = &self.errors {
            let parts = [
                ("invalid lines", self.bad_lines),
                ("duplicate ids", self.duplicates),
                ("changed since", self.changed),
            ];
            for (name, lines) in parts.into_iter().filter(|(_, lines)| *lines > 0) {
                row(name, TableCell::from(format!("{} in {errors}", counted(lines, "line", "lines"))));
            }
        }
        row("calls", count(self.calls));
        row("throttled (429)", TableCell::from(self.throttled_share()));
        row("cooldowns", count(self.cooldowns));
        if self.paused_ms > 0 {
            row("paused", TableCell::from(roughly(Duration::from_millis(self.paused_ms))));
        }
        row("tokens", count(self.tokens));
        if self.cost_micros > 0 {
            row("cost", TableCell::from(self.cost()));
        }
        if self.closed_accounts > 0 {
            let text = format!("{} of {}", self.closed_accounts, self.accounts.len());
            row("closed accounts", TableCell::from(text));
        }
        for AccountLine { name, closed, .. } in &self.accounts {
            if let Some(reason) = closed {
                row("closed", TableCell::from(format!("account {name}: {reason}")));
            }
        }
        row("took", TableCell::from(roughly(Duration::from_millis(self.took_ms))));
        row("results", TableCell::from(self.unwritten.as_ref().unwrap_or(&self.results).clone()));
        if let Some(journal) = &self.journal {
            row("journal", TableCell::from(format!("{journal}, for --resume")));
        }
        page.table(&table);
        if self.calls > 0 {
            page.gap();
            let mut times = TextTable::new(["TIME", "MEDIAN", "90 %", "99 %", "LONGEST"])
                .right(1)
                .right(2)
                .right(3)
                .right(4);
            times.row(self.call_ms.row("of a call"));
            times.row(self.request_ms.row("since acceptance"));
            page.table(&times);
        }
        if self.accounts.len() > 1 {
            page.gap();
            let mut table =
                TextTable::new(["ACCOUNT", "CALLS", "THROTTLED", "COOLDOWNS"]).right(1).right(2).right(3);
            for account in &self.accounts {
                let AccountLine { name, calls, rejected, cooldowns, .. } = account;
                table.row([TableCell::name(name), count(*calls), count(*rejected), count(*cooldowns)]);
            }
            page.table(&table);
        }
        if !self.reasons.is_empty() {
            page.gap();
            let mut table = TextTable::new(["REQUESTS", "STATUS", "REASON"]).right(0).wrap(2);
            for CountedReason { status, reason, requests } in &self.reasons {
                table.row([count(*requests), status.word().into(), reason.into()]);
            }
            page.table(&table);
        }
        if let Some(why) = &self.stopped {
            page.remark(format!("ended early: {why}; --resume continues"));
        }
    }
}
