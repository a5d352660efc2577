//! The state of the fleet, as tables and as a line.

use std::time::Duration;

use anstyle::Style;
use anyhow::Result;
use tollgate::limiter::LinkStatus;
use tollgate::{Limit, Limiter, Status, Tick};

use super::accounts::AccountStatus;
use super::fleet::{DemoKey, Fleet, RESOURCE};
use super::tally::DemoCount;
use crate::commands::set::state;
use crate::limit_text;
use crate::output::style::{self, paint};
use crate::output::{TableCell, TextPage, TextTable, cut_line, grouped, shown_bar};
use crate::views::micros;

/// The columns of a bar on a terminal of 80 columns, and how many more columns of the terminal give it another one.
const BAR: (usize, usize) = (5, 3);

/// The most columns of a bar.
const BAR_MAX: usize = 20;

/// The most events that are shown.
const EVENTS_MAX: usize = 15;

/// The lines of the limits and the legend, with the gap above them, and the fewest of the events with theirs.
const LEGEND_LINES: usize = 6;
const EVENT_LINES: usize = 2;

/// The state of one entity.
struct DemoRow {
    name: String,
    limits: [DemoLimit; 4],
    /// The counters, for keys only.
    count: Option<DemoCount>,
}

/// The state of one limit.
#[derive(Clone)]
struct DemoLimit {
    available: i64,
    limit: Option<Limit>,
}

/// The state of the fleet.
pub(super) struct DemoView {
    rows: Vec<DemoRow>,
    accounts: Vec<AccountStatus>,
    now: Tick,
    sum: DemoCount,
    events: Vec<String>,
}

/// The size of the screen.
#[derive(Clone, Copy)]
pub(super) struct DemoSize {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

impl DemoView {
    /// Reads every limit of every entity and account, and acquires nothing.
    pub(super) fn of(fleet: &Fleet, limiter: &Limiter) -> Result<DemoView> {
        let mut rows: Vec<DemoRow> = Vec::new();
        for project in fleet.projects {
            let first = rows.len();
            for key in fleet.keys.iter().filter(|key| key.project == project) {
                let status = limiter.available(key.name, RESOURCE).wait()?;
                let parts = status.parts.iter();
                rows.extend(parts.clone().take(1).map(|part| DemoRow::of_key(key, part)));
                let is_first = rows.get(first).is_some_and(|row| row.name != project);
                if let Some(part) = parts.clone().find(|part| part.entity == project).filter(|_| is_first) {
                    rows.insert(first, DemoRow::of(part, project.into(), None));
                }
            }
        }
        Ok(DemoView {
            rows,
            accounts: fleet.accounts.status()?,
            now: limiter.catalog().backend().clock().now(),
            sum: fleet.keys.iter().map(|key| key.tally.count()).sum(),
            events: fleet.events.latest(EVENTS_MAX),
        })
    }

    /// Returns the lines of a screen: at most one less than it has, because the cursor stays below them.
    pub(super) fn lines(&self, size: DemoSize, done: u64, seconds: u64) -> Vec<String> {
        let mut page = TextPage::new(size.columns);
        self.tables(&mut page, size, done, seconds);
        let tables = page.finish().0;
        let room = size.lines.saturating_sub(1);
        let mut lines: Vec<String> = tables.lines().map(str::to_owned).collect();
        if lines.len() + LEGEND_LINES <= room {
            let mut page = TextPage::new(size.columns);
            self.legend(&mut page);
            lines.push(String::new());
            lines.extend(page.finish().0.lines().map(str::to_owned));
        }
        let events = room.saturating_sub(lines.len() + 1).min(EVENTS_MAX);
        if events >= EVENT_LINES {
            let skipped = self.events.len().saturating_sub(events);
            lines.push(String::new());
            let end = lines.len() + events;
            lines.extend(self.events[skipped..].iter().cloned());
            // The number of lines stays the same, so that the screen does not move.
            lines.resize(end, String::new());
        }
        lines.truncate(room);
        lines.iter().map(|line| cut_line(line, size.columns)).collect()
    }

    fn tables(&self, page: &mut TextPage, size: DemoSize, done: u64, seconds: u64) {
        let bar = BAR.0 + size.columns.saturating_sub(80) / BAR.1;
        let bar = bar.min(BAR_MAX);
        let title = paint(style::HEADING, "12 workers call gpt-4 with 4 API keys over 2 provider accounts");
        page.line(format_args!("{title}  {done}s of {seconds}s"));
        page.gap();
        let headings = ["ENTITY", "RPM LEFT", "TPM LEFT", "SLOTS", "USD LEFT", "OK", "DENIED", "WAIT"];
        let mut table = [5, 6, 7].into_iter().fold(TextTable::new(headings), TextTable::right);
        for row in &self.rows {
            table.row(row.cells(bar));
        }
        page.table(&table);
        page.gap();
        let headings = ["ACCOUNT", "RPM LEFT", "CONNECTIONS", "CALLS", "TOKENS", "429", "STATE"];
        let mut table = [3, 4, 5].into_iter().fold(TextTable::new(headings), TextTable::right);
        for account in &self.accounts {
            table.row(account_cells(account, self.now, bar));
        }
        page.table(&table);
    }

    /// Adds the limits and what the signs mean.
    fn legend(&self, page: &mut TextPage) {
        let key = self.rows.iter().find(|row| row.count.is_some()).map(|row| ("each key", row));
        let projects = self.rows.iter().filter(|row| row.count.is_none()).map(|row| (row.name.as_str(), row));
        let mut table = TextTable::new(["LIMITS", "RPM", "TPM", "SLOTS", "BUDGET"]);
        for (name, row) in key.into_iter().chain(projects) {
            let [rpm, tpm, slots, spend] = row.limits.each_ref().map(DemoLimit::capacity_text);
            table.row([TableCell::name(name), rpm.into(), tpm.into(), slots.into(), spend.into()]);
        }
        page.table(&table);
        page.line("█ ● left  ░ ○ in use  12 +300/min: 12 at once, and 300 a minute come back");
    }

    /// Formats the state on one line.
    pub(super) fn line(&self, done: u64) -> String {
        let DemoCount { admitted, denied, waiting, throttled, .. } = self.sum;
        let left = |row: &DemoRow| format!("{} {}", row.name, row.limits[3].left_text());
        let projects = self.rows.iter().filter(|row| row.count.is_none());
        let budgets = projects.map(left).collect::<Vec<_>>().join(", ");
        format!(
            "{done:>4}s  ok {admitted:>4}  denied {denied:>4}  wait {waiting:>2}  429 {throttled:>3}  left: {budgets}"
        )
    }
}

/// Returns the cells of an account.
fn account_cells(account: &AccountStatus, now: Tick, bar: usize) -> [TableCell; 7] {
    let limit = |name: &str| account.limits.limit(name).map_or(DemoLimit::NONE, DemoLimit::of);
    let cooling = account.limits.cooling_until.map(|until| until.since(now).to_duration());
    let throttled = grouped(account.stats.rejected);
    let is_throttled = account.stats.rejected > 0;
    [
        TableCell::name(account.name),
        limit("rpm").bar(bar),
        limit("connections").dots(),
        grouped(account.stats.calls).into(),
        grouped(account.stats.tokens).into(),
        if is_throttled { TableCell::styled(throttled, style::WARN) } else { throttled.into() },
        state(cooling.filter(|left| *left > Duration::ZERO).map(micros), false),
    ]
}

impl DemoRow {
    fn of_key(key: &DemoKey, part: &LinkStatus) -> DemoRow {
        DemoRow::of(part, format!("  {}", key.name), Some(key.tally.count()))
    }

    fn of(part: &LinkStatus, name: String, count: Option<DemoCount>) -> DemoRow {
        let level = |name: &str| {
            let status = part.denial.statuses().find(|status| status.limit().name() == name);
            status.map_or(DemoLimit::NONE, |status| DemoLimit::of(&status))
        };
        DemoRow { name, limits: ["rpm", "tpm", "slots", "spend"].map(level), count }
    }

    fn cells(&self, bar: usize) -> [TableCell; 8] {
        let DemoRow { name, limits: [rpm, tpm, slots, spend], count } = self;
        let counted =
            |of: fn(&DemoCount) -> u64| count.as_ref().map(|count| grouped(of(count))).unwrap_or_default();
        let denied = counted(|count| count.denied);
        let is_denied = count.is_some_and(|count| count.denied > 0);
        [
            if count.is_some() { name.into() } else { TableCell::name(name) },
            rpm.bar(bar),
            tpm.bar(bar),
            slots.dots(),
            spend.bar(bar),
            counted(|count| count.admitted).into(),
            if is_denied { TableCell::styled(denied, style::WARN) } else { denied.into() },
            counted(|count| count.waiting).into(),
        ]
    }
}

impl DemoLimit {
    /// A limit that there is not.
    const NONE: DemoLimit = DemoLimit { available: 0, limit: None };

    fn of(status: &Status) -> DemoLimit {
        DemoLimit { available: status.available(), limit: Some(status.limit().clone()) }
    }

    fn capacity(&self) -> u64 {
        self.limit.as_ref().map_or(0, Limit::capacity)
    }

    /// Formats what is left: a budget in dollars and cents.
    fn left_text(&self) -> String {
        self.limit.as_ref().map(|limit| amount_text(limit, self.available)).unwrap_or_default()
    }

    /// Formats the capacity and how much comes back: `12 +300/min`.
    fn capacity_text(&self) -> String {
        let Some(limit) = &self.limit else { return String::new() };
        let amount = |amount: u64| amount_text(limit, i64::try_from(amount).unwrap_or(i64::MAX));
        match limit.period() {
            Some(_) if limit.amount() == limit.capacity() => {
                format!("{} per {}", amount(limit.amount()), limit_text::per(limit))
            }
            Some(_) => format!("{} +{}/min", amount(limit.capacity()), amount(limit.amount())),
            None => amount(limit.capacity()),
        }
    }

    /// Returns the share that is left, from 0 to 1.
    fn share_left(&self) -> f64 {
        self.available.max(0) as f64 / self.capacity().max(1) as f64
    }

    /// Returns the style of a bar: red below 10 %, magenta below 40 %.
    fn style(&self) -> Style {
        match self.share_left() {
            share if share < 0.1 => style::BAD,
            share if share < 0.4 => style::WARN,
            _ => style::GOOD,
        }
    }

    /// Returns a bar of what is left, and the number.
    fn bar(&self, columns: usize) -> TableCell {
        TableCell::styled(
            format!("{} {}", shown_bar(self.share_left(), columns), self.left_text()),
            self.style(),
        )
    }

    /// Returns a dot for each slot: full if it is free.
    fn dots(&self) -> TableCell {
        let capacity = usize::try_from(self.capacity()).unwrap_or(0);
        let free = usize::try_from(self.available).unwrap_or(0).min(capacity);
        TableCell::styled(format!("{}{}", "●".repeat(free), "○".repeat(capacity - free)), self.style())
    }
}

/// Formats an amount of a limit: those of a budget in dollars and cents.
pub(super) fn amount_text(limit: &Limit, amount: i64) -> String {
    if limit.unit().is_some() { dollars(amount) } else { grouped(amount) }
}

/// Formats millionths of a dollar as dollars and cents, rounded down.
pub(super) fn dollars(micros: i64) -> String {
    let cents = micros.unsigned_abs() / 10_000;
    let sign = if micros < 0 { "-" } else { "" };
    format!("{sign}${}.{:02}", grouped(cents / 100), cents % 100)
}

#[cfg(test)]
mod tests {
    use tollgate::Clock;

    use super::*;

    fn view() -> DemoView {
        let limits =
            ["rpm:900/minute:20", "tpm:600000/minute:12000", "slots:6/at-once", "spend:5/day,unit=USD:6"];
        let limits = limits.map(|text| crate::limit_text::parse(text).unwrap());
        let available = [20, -9_999, 2, 4_999_999];
        let mut places = 0..4;
        let levels = limits.map(|limit| {
            let place = places.next().unwrap_or_default();
            DemoLimit { available: available[place], limit: Some(limit) }
        });
        let count = DemoCount { admitted: 99_999, denied: 99_999, waiting: 3, ..DemoCount::default() };
        let row = |name: &str| DemoRow {
            name: name.into(),
            limits: levels.clone(),
            count: name.starts_with(' ').then_some(count),
        };
        let limits = [Limit::per_minute("rpm", 480).burst(8), Limit::resource("connections", 6)];
        let set = tollgate::LimitSet::new(limits).unwrap();
        set.cool_down(Duration::from_secs(5)).wait().unwrap();
        let account = |name| AccountStatus {
            name,
            limits: set.peek().wait().unwrap(),
            stats: tollgate_mock_provider::MockProvider::builder().build().unwrap().stats(),
        };
        DemoView {
            rows: ["acme", "  acme-web", "  acme-batch", "globex", "  globex-app", "  globex-cron"]
                .map(row)
                .into(),
            accounts: ["blue", "green"].map(account).into(),
            now: Clock::system().now(),
            sum: count,
            events: (0..EVENTS_MAX).map(|event| format!("{event} {}", "long ".repeat(40))).collect(),
        }
    }

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn the_screen_fits_every_size_and_nothing_but_an_event_is_cut_from_80_columns_on() {
        for columns in [40, 80, 100, 140, 200] {
            for lines in [5, 14, 20, 24, 40, 100] {
                let shown = plain(&view().lines(DemoSize { columns, lines }, 3_600, 3_600));
                assert!(shown.len() < lines, "{columns}x{lines}: {shown:#?}");
                let widest = shown.iter().map(|line| line.chars().count()).max();
                assert!(widest <= Some(columns), "{columns}x{lines}: {shown:#?}");
                let cut = shown.iter().filter(|line| line.ends_with('…') && !line.contains("long")).count();
                assert!(cut == 0 || columns < 80, "{columns}x{lines}: {shown:#?}");
            }
        }
    }

    #[test]
    fn a_larger_terminal_shows_more() {
        let lines = |columns, lines| plain(&view().lines(DemoSize { columns, lines }, 1, 2));
        let has = |lines: &[String], text: &str| lines.iter().any(|line| line.contains(text));
        let small = lines(80, 24);
        assert!(has(&small, "each key") && has(&small, "█ ● left") && has(&small, "long"), "{small:#?}");
        assert!(!has(&lines(80, 15), "each key"));
        let large = lines(140, 40);
        assert_eq!(large.iter().filter(|line| line.contains("long")).count(), EVENTS_MAX);
        assert!(large[3].chars().count() > small[3].chars().count() + 40, "the bars are longer: {large:#?}");
    }

    #[test]
    fn a_line_fits_80_columns() {
        let line = view().line(3_600);
        assert!(line.chars().count() <= 80, "{line}");
        assert!(line.ends_with("left: acme $4.99, globex $4.99"), "{line}");
    }

    #[test]
    fn capacities_name_what_comes_back() {
        let texts = view().rows[0].limits.each_ref().map(DemoLimit::capacity_text);
        assert_eq!(texts, ["20 +900/min", "12,000 +600,000/min", "6", "$5.00 per day"]);
    }

    #[test]
    fn money_is_rounded_down_to_cents() {
        assert_eq!([0, 9_999, 1_234_567, -10_000].map(dollars), ["$0.00", "$0.00", "$1.23", "-$0.01"]);
    }
}
