//! The state of the fleet, as a table and as a line.

use anstyle::Style;
use anyhow::Result;
use tollgate::limiter::LinkStatus;
use tollgate::{Limiter, Status};

use super::fleet::{DemoKey, Fleet, RESOURCE};
use super::tally::DemoCount;
use crate::output::style::{self, paint};
use crate::output::{TableCell, TextPage, TextTable, grouped};

/// The columns of a bar.
const BAR: usize = 6;

/// The state of one entity.
struct DemoRow {
    name: String,
    rpm: DemoLimit,
    tpm: DemoLimit,
    slots: DemoLimit,
    /// The counters, for keys only.
    count: Option<DemoCount>,
}

/// The state of one limit.
#[derive(Clone, Copy, Default)]
struct DemoLimit {
    available: i64,
    capacity: u64,
}

/// The state of the fleet.
pub(super) struct DemoView {
    rows: Vec<DemoRow>,
    sum: DemoCount,
}

impl DemoView {
    /// Reads every limit of every entity, and acquires nothing.
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
        Ok(DemoView { rows, sum: fleet.keys.iter().map(|key| key.tally.count()).sum() })
    }

    /// Writes the table.
    pub(super) fn page(&self, page: &mut TextPage, done: u64, seconds: u64) {
        let time = format!("{done}s of {seconds}s");
        let title = paint(style::HEADING, "12 workers call gpt-4 with the keys of two projects");
        page.line(format_args!("{title}  {time}"));
        page.gap();
        let headings = ["ENTITY", "RPM", "", "TPM", "", "SLOTS", "ADMITTED", "DENIED", "WAITING"];
        let mut table = [2, 4, 6, 7, 8].into_iter().fold(TextTable::new(headings), TextTable::right);
        for row in &self.rows {
            table.row(row.cells());
        }
        page.table(&table);
    }

    /// Formats the state on one line.
    pub(super) fn line(&self, done: u64) -> String {
        let DemoCount { admitted, refused, waiting, .. } = self.sum;
        let tokens = |row: &DemoRow| format!("{} {}", row.name, grouped(row.tpm.available));
        let projects = self.rows.iter().filter(|row| row.count.is_none());
        let projects = projects.map(tokens).collect::<Vec<_>>().join(", ");
        format!(
            "{done:>4}s  admitted {admitted:>4}  denied {refused:>4}  waiting {waiting:>2}  tpm: {projects}"
        )
    }
}

impl DemoRow {
    fn of_key(key: &DemoKey, part: &LinkStatus) -> DemoRow {
        DemoRow::of(part, format!("  {}", key.name), Some(key.tally.count()))
    }

    fn of(part: &LinkStatus, name: String, count: Option<DemoCount>) -> DemoRow {
        let level = |name: &str| {
            let status = part.denial.statuses().find(|status| status.limit().name() == name);
            status.map(|status: Status| DemoLimit::of(&status)).unwrap_or_default()
        };
        DemoRow { name, rpm: level("rpm"), tpm: level("tpm"), slots: level("slots"), count }
    }

    fn cells(&self) -> [TableCell; 9] {
        let DemoRow { name, rpm, tpm, slots, count } = self;
        let counted =
            |of: fn(&DemoCount) -> u64| count.as_ref().map(|count| grouped(of(count))).unwrap_or_default();
        let denied = counted(|count| count.refused);
        let is_denied = count.is_some_and(|count| count.refused > 0);
        [
            if count.is_some() { name.into() } else { TableCell::name(name) },
            rpm.bar(),
            grouped(rpm.available).into(),
            tpm.bar(),
            grouped(tpm.available).into(),
            slots.dots(),
            counted(|count| count.admitted).into(),
            if is_denied { TableCell::styled(denied, style::WARN) } else { denied.into() },
            counted(|count| count.waiting).into(),
        ]
    }
}

impl DemoLimit {
    fn of(status: &Status) -> DemoLimit {
        DemoLimit { available: status.available(), capacity: status.limit().capacity() }
    }

    /// Returns the style of a bar: red below 10 %, magenta below 40 %.
    fn style(self) -> Style {
        let left = u64::try_from(self.available).unwrap_or(0);
        match (left * 10 < self.capacity, left * 10 < self.capacity * 4) {
            (true, _) => style::BAD,
            (false, true) => style::WARN,
            (false, false) => style::GOOD,
        }
    }

    fn bar(self) -> TableCell {
        let left = u64::try_from(self.available).unwrap_or(0);
        let filled = (left * BAR as u64).div_ceil(self.capacity.max(1));
        let filled = usize::try_from(filled).unwrap_or(BAR).min(BAR);
        TableCell::styled(format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled)), self.style())
    }

    /// Returns a dot for each slot: full if it is held.
    fn dots(self) -> TableCell {
        let capacity = usize::try_from(self.capacity).unwrap_or(0);
        let free = usize::try_from(self.available).unwrap_or(0).min(capacity);
        let style = if free == 0 { style::BAD } else { style::GOOD };
        TableCell::styled(format!("{}{}", "●".repeat(capacity - free), "○".repeat(free)), style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_into_80_columns_whatever_the_numbers() {
        let level = |available| DemoLimit { available, capacity: 12_000 };
        let slots = DemoLimit { available: 2, capacity: 6 };
        let count = DemoCount { admitted: 99_999, refused: 99_999, waiting: 3, ..DemoCount::default() };
        let names = ["acme", "  acme-batch", "  globex-cron"];
        let row = |name: &str| DemoRow {
            name: name.into(),
            rpm: DemoLimit { available: -10, capacity: 20 },
            tpm: level(-12_000),
            slots,
            count: Some(count),
        };
        let view = DemoView { rows: names.map(row).into(), sum: count };
        let mut page = TextPage::new(80);
        view.page(&mut page, 3_600, 3_600);
        let text = anstream::adapter::strip_str(&page.finish().0).to_string();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}\n{text}");
    }

    #[test]
    fn a_bar_is_empty_only_if_nothing_is_left() {
        let bar = |available| format!("{:?}", DemoLimit { available, capacity: 1_000 }.bar());
        assert!(bar(0).contains("░░░░░░") && bar(-5).contains("░░░░░░"));
        assert!(bar(1).contains("█░░░░░"));
        assert!(bar(1_000).contains("██████"));
    }
}
