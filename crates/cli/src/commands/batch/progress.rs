//! The progress of a batch as text, laid out for any width.

use std::time::Duration;

use anstyle::Style;
use tollgate_batch::pace::PaceRate;
use tollgate_batch::{BatchProgress, ScopeStatus};

use crate::duration_text::roughly;
use crate::output::style::{BAD, NAME, WARN, paint};
use crate::output::{cut_line, escape, grouped};

/// The progress of a batch at one instant.
pub(crate) struct Snapshot {
    pub(crate) counts: BatchProgress,
    /// Finished lines of the input: done, failed, done by an earlier run, or invalid.
    pub(crate) finished: u64,
    /// Lines of the input, if known.
    pub(crate) total: Option<u64>,
    pub(crate) per_second: f64,
    /// The time to completion, if it can be estimated.
    pub(crate) eta: Option<Duration>,
    pub(crate) scopes: Vec<ScopeStatus>,
    pub(crate) last_error: Option<String>,
}

impl Snapshot {
    /// Formats the text beside the bar: `3,100 of 5,000`.
    pub(crate) fn position(&self) -> String {
        match self.total {
            Some(total) => format!("{} of {}", grouped(self.finished), grouped(total)),
            None => format!("{} finished", grouped(self.finished)),
        }
    }

    /// Formats the lines below the bar, none longer than `width`. At most `accounts_max` accounts have a line.
    pub(crate) fn lines(&self, width: usize, accounts_max: usize) -> Vec<String> {
        let mut lines = packed(&self.facts(), width);
        let shown = self.scopes.len().min(accounts_max);
        let name_width = self.scopes.iter().map(|scope| escape(&scope.name).chars().count()).max();
        let name_width = name_width.unwrap_or(0).min(width / 3);
        for scope in &self.scopes[..shown] {
            lines.push(account(scope, name_width, width));
        }
        if shown < self.scopes.len() {
            lines.push(cut_line(&format!("and {} more accounts", self.scopes.len() - shown), width));
        }
        if let Some(error) = &self.last_error {
            lines.push(labelled(BAD, "last error", error, width));
        }
        lines
    }

    /// Formats everything on one line, for a log: the counts, each account, and the last error.
    pub(crate) fn line(&self) -> String {
        let mut facts = vec![self.position()];
        if let Some(total) = self.total {
            facts.push(format!("{} %", percent(self.finished, total)));
        }
        facts.extend(self.facts());
        let mut parts = vec![facts.join(", ")];
        parts.extend(self.scopes.iter().map(|scope| {
            let text = match halt(scope) {
                Some(Halt { label, reason, .. }) => format!("{label}: {}", escape(reason)),
                None => account_facts(scope).join(", "),
            };
            format!("{}: {text}", escape(&scope.name))
        }));
        parts.extend(self.last_error.as_ref().map(|error| format!("last error: {}", escape(error))));
        parts.join("; ")
    }

    fn facts(&self) -> Vec<String> {
        let counts = &self.counts;
        let mut facts = vec![format!("{:.1}/s", self.per_second)];
        if self.total.is_some_and(|total| total > self.finished) {
            facts.push(format!("ETA {}", self.eta.map_or_else(|| "unknown".into(), countdown)));
        }
        facts.push(format!("{} done", grouped(counts.done)));
        if counts.failed > 0 {
            facts.push(format!("{} failed", grouped(counts.failed)));
        }
        if counts.rejected > 0 {
            facts.push(format!("{} throttled", share(counts.rejected, counts.calls)));
        }
        facts.push(format!("{} tokens", grouped(counts.tokens)));
        if counts.cost_micros > 0 {
            facts.push(money(counts.cost_micros));
        }
        facts
    }
}

/// Formats the line of an account: why it is closed or cooling down, or what it learned.
fn account(scope: &ScopeStatus, name_width: usize, width: usize) -> String {
    let name = cut_line(&escape(&scope.name), name_width);
    let name = format!("{name:<name_width$}");
    let rest = width.saturating_sub(name_width + 2);
    let text = match halt(scope) {
        Some(Halt { style, label, reason }) => labelled(style, &label, reason, rest),
        None => fitting(&account_facts(scope), rest),
    };
    format!("{}  {text}", paint(NAME, name))
}

/// Why an account is not called.
struct Halt<'a> {
    style: Style,
    label: String,
    reason: &'a str,
}

fn halt(scope: &ScopeStatus) -> Option<Halt<'_>> {
    if let Some(closed) = &scope.closed {
        return Some(Halt { style: BAD, label: "closed".into(), reason: &closed.reason });
    }
    let cooldown = scope.cooldown.as_ref()?;
    let label = format!("cooling down {}", countdown(cooldown.left));
    Some(Halt { style: WARN, label, reason: &cooldown.reason })
}

fn account_facts(scope: &ScopeStatus) -> Vec<String> {
    let learned = &scope.learned;
    let limits = [
        learned.calls.map(|rate| rate_text(rate, "")),
        learned.tokens.map(|rate| rate_text(rate, " tokens")),
    ];
    let mut facts: Vec<String> = limits.into_iter().flatten().collect();
    match facts.first_mut() {
        Some(first) => first.insert_str(0, "limit "),
        None => facts.push("no limit reached".into()),
    }
    let counters = &scope.counters;
    facts.push(format!("{} in flight", grouped(scope.in_flight)));
    facts.push(format!("{} calls", grouped(counters.calls)));
    facts.push(format!("{} throttled", share(counters.rejected, counters.calls)));
    facts
}

fn rate_text(rate: PaceRate, unit: &str) -> String {
    let tenths = rate.millionths() / 100_000;
    match tenths {
        0..1_000 => format!("{}.{}{unit}/s", tenths / 10, tenths % 10),
        _ => format!("{}{unit}/s", grouped(tenths / 10)),
    }
}

/// Formats whole seconds, rounded up, so that a countdown does not flicker and ends with 1.
fn countdown(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..60 => format!("{seconds}s"),
        _ => roughly(Duration::from_secs(seconds)),
    }
}

pub(crate) fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent.min(100)).unwrap_or(100)
}

/// Formats millionths of a dollar with few decimals, so that the text stays readable while it changes: `$0.0421`, `$4.20`.
fn money(micros: u64) -> String {
    let dollars = micros / 1_000_000;
    let rest = micros % 1_000_000;
    match dollars {
        0 => format!("$0.{:04}", rest / 100),
        _ => format!("${}.{:02}", grouped(dollars), rest / 10_000),
    }
}

/// Formats a share as a percentage: `2.1 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1_000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Formats a coloured label and an untrusted text, truncated to the width.
fn labelled(style: Style, label: &str, text: &str, width: usize) -> String {
    let line = cut_line(&format!("{label}: {}", escape(text)), width);
    match line.strip_prefix(label) {
        Some(rest) => format!("{}{rest}", paint(style, label)),
        None => line,
    }
}

/// Returns as many facts as fit, first ones first.
fn fitting(facts: &[String], width: usize) -> String {
    packed(facts, width).into_iter().next().unwrap_or_default()
}

/// Joins facts to lines of at most `width`.
fn packed(facts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        let fits = |line: &&mut String| line.chars().count() + 2 + fact.chars().count() <= width;
        match lines.last_mut().filter(fits) {
            Some(line) => {
                line.push_str(", ");
                line.push_str(fact);
            }
            None => lines.push(cut_line(fact, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
    use tollgate_provider::Hint;

    use super::*;

    const WIDTHS: [usize; 4] = [20, 50, 80, 140];

    fn snapshot() -> Snapshot {
        let mut counts = BatchProgress::default();
        (counts.done, counts.failed, counts.calls, counts.rejected) = (3_097, 3, 3_200, 67);
        (counts.tokens, counts.cost_micros) = (1_284_000, 4_200_000);
        Snapshot {
            counts,
            finished: 3_100,
            total: Some(5_000),
            per_second: 41.234,
            eta: Some(Duration::from_millis(45_100)),
            scopes: Vec::new(),
            last_error: Some(
                "Overloaded\u{1b}[2J with a long explanation that no terminal has room for".into(),
            ),
        }
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_and_no_count_is_left_out() {
        for width in WIDTHS {
            let lines = snapshot().lines(width, 10);
            let plain: Vec<String> =
                lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
            assert!(plain.iter().all(|line| line.chars().count() <= width), "{width}: {plain:#?}");
            for fact in ["41.2/s", "ETA 46s", "3 failed", "2.0 % throttled", "1,284,000 tokens", "$4.20"] {
                assert!(plain.iter().any(|line| line.contains(fact)), "{width}: {fact} in {plain:#?}");
            }
            assert!(!lines.concat().contains("\u{1b}[2J"), "{lines:#?}");
        }
    }

    #[test]
    fn a_log_has_all_of_it_in_one_line() {
        let line = snapshot().line();
        assert!(line.starts_with("3,100 of 5,000, 62 %, 41.2/s, ETA 46s, 3,097 done, 3 failed"), "{line}");
        let unknown = Snapshot { total: None, ..snapshot() }.line();
        assert!(unknown.starts_with("3,100 finished, 41.2/s, 3,097 done"), "{unknown}");
    }

    /// The accounts of a batch: one is open, one was closed, one cools down.
    fn scopes() -> Vec<ScopeStatus> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut scopes = runtime.block_on(async {
            let items = ["blue", "red", "green"].map(|scope| Item::new(scope, ()).scope(scope));
            let batch = ["blue", "red", "green"].into_iter().fold(Batch::new(), Batch::account);
            let run = batch.run(items, |call: ItemAttempt<()>| async move {
                match call.scope() {
                    "red" => CallReply::refused(Hint::exhausted(None).with_reason("no\u{7} quota")),
                    "green" => {
                        let advice = Some(Duration::from_secs(36_000));
                        CallReply::refused(Hint::throttled(advice).with_reason("slow down"))
                    }
                    _ => CallReply::done((), Hint::ok()),
                }
            });
            loop {
                let scopes = run.scopes();
                let is_halted = |name: &str| {
                    let scope = scopes.iter().find(|scope| &*scope.name == name);
                    scope.is_some_and(|scope| scope.closed.is_some() || scope.cooldown.is_some())
                };
                if is_halted("red") && is_halted("green") {
                    break scopes;
                }
                tokio::task::yield_now().await;
            }
        });
        (scopes[0].in_flight, scopes[0].counters.calls) = (3, 120);
        scopes[0].learned.calls = Some(PaceRate::per_second(40));
        scopes[0].learned.tokens = Some(PaceRate::per_second(8_000));
        scopes
    }

    #[test]
    fn a_log_has_the_limits_of_each_account_or_why_it_is_not_called() {
        let line = Snapshot { scopes: scopes(), ..snapshot() }.line();
        for fact in [
            "$4.20; blue: limit 40.0/s, 8,000 tokens/s, 3 in flight, 120 calls, 0.0 % throttled; ",
            "; red: closed: no",
            " quota; green: cooling down ",
            ": slow down; last error: Overloaded",
        ] {
            assert!(line.contains(fact), "{fact}: {line}");
        }
        assert!(!line.contains(char::is_control), "{line}");
    }

    #[test]
    fn shares_and_times_of_nothing_can_be_shown() {
        assert_eq!((percent(0, 0), share(0, 0)), (0, "0.0 %".into()));
        assert_eq!(percent(9, 3), 100);
        assert_eq!(
            (money(0), money(42_199), money(1_234_567_899)),
            ("$0.0000".into(), "$0.0421".into(), "$1,234.56".into())
        );
        assert_eq!(countdown(Duration::ZERO), "0s");
        assert_eq!(countdown(Duration::from_millis(59_001)), "1m");
    }
}
