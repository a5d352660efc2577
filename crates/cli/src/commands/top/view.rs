//! A snapshot as JSON and as text.

use std::collections::BTreeMap;

use serde::Serialize;
use tollgate::Status;
use tollgate::store::usage::iso;

use super::sets::{SetView, sets_text};
use super::snapshot::{NamespaceSnapshot, TopRow};
use super::waiting::{WaiterView, waiting_text};
use crate::context::Context;
use crate::limit_text;
use crate::output::style::{self, paint};
use crate::output::{Answer, TableCell, TextPage, TextTable, compact, counted, grouped, shown_bar};

/// The width of a bar.
const BAR: usize = 6;

/// The used share of a limit from which it is highlighted.
const NEARLY: f64 = 0.8;

#[derive(Serialize)]
pub(super) struct TopAnswer {
    namespace: String,
    at: String,
    hour: String,
    in_use: usize,
    rows: Vec<TopRowView>,
    waiting: Vec<WaiterView>,
    sets: Vec<SetView>,
    #[serde(skip)]
    room: RowRoom,
    /// What the headline says at its end.
    #[serde(skip)]
    remarks: String,
}

/// The maximum number of rows of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowRoom {
    /// Of entities.
    pub(super) rows: usize,
    /// Of the waiters.
    pub(super) waiters: usize,
    /// Of limit sets.
    pub(super) sets: usize,
    /// Whether each row has one line only, because the number of lines is fixed.
    pub(super) is_screen: bool,
}

#[derive(Serialize)]
struct TopRowView {
    entity: String,
    resource: String,
    calls: u64,
    calls_change: Option<u64>,
    #[serde(skip)]
    calls_per_second: Option<f64>,
    used: BTreeMap<String, i64>,
    tightest: Option<TightestView>,
    held: BTreeMap<String, u64>,
    #[serde(skip)]
    held_text: String,
}

/// The limit of which the smallest share is left.
#[derive(Serialize)]
pub(super) struct TightestView {
    limit: String,
    available: i64,
    capacity: u64,
    share_used: f64,
    #[serde(skip)]
    left: String,
}

impl TopAnswer {
    /// Returns the output with as many rows as fit.
    pub(super) fn new(context: &Context, snapshot: &NamespaceSnapshot, room: RowRoom) -> TopAnswer {
        TopAnswer {
            namespace: context.settings.namespace.value.clone(),
            at: iso(snapshot.at),
            hour: iso(snapshot.hour),
            in_use: snapshot.in_use,
            rows: snapshot.rows.iter().take(room.rows).map(TopRowView::of).collect(),
            waiting: snapshot.waiters.iter().map(|waiter| WaiterView::of(waiter, snapshot.at)).collect(),
            sets: snapshot.sets.iter().map(|set| SetView::of(set, snapshot.at)).collect(),
            room,
            remarks: String::new(),
        }
    }

    /// Adds to the end of the headline.
    pub(super) fn with_remarks(self, remarks: String) -> TopAnswer {
        TopAnswer { remarks, ..self }
    }
}

impl TopRowView {
    fn of(row: &TopRow) -> TopRowView {
        let tightest = row.tightest().map(|(status, share)| TightestView::of(status, share));
        let held_text: Vec<String> =
            row.held().map(|(name, held, capacity)| format!("{name} {held}/{capacity}")).collect();
        TopRowView {
            entity: row.entity.clone(),
            resource: row.resource.clone(),
            calls: row.calls,
            calls_change: row.calls_change,
            calls_per_second: row.calls_per_second,
            used: row.used.clone(),
            tightest,
            held: row.held().map(|(name, held, _)| (name.to_owned(), held)).collect(),
            held_text: held_text.join(", "),
        }
    }

    fn cells(&self) -> [TableCell; 8] {
        let rate = self.calls_per_second.map(rate_text).unwrap_or_default();
        let [limit, left, bar] = TightestView::cells(self.tightest.as_ref());
        let entity = TableCell::name(&self.entity);
        let resource = TableCell::from(&self.resource);
        let held = TableCell::from(&self.held_text);
        [entity, resource, grouped(self.calls).into(), rate.into(), limit, left, bar, held]
    }
}

impl TightestView {
    pub(super) fn of(status: &Status, share_used: f64) -> TightestView {
        let limit = status.limit();
        let available = status.available();
        let sign = if available < 0 { "-" } else { "" };
        let shown = |amount: u64| match limit.unit() {
            Some(_) => cents(&grouped(limit_text::amount(limit, amount))),
            None => compact(amount),
        };
        TightestView {
            limit: limit.name().to_string(),
            available,
            capacity: limit.capacity(),
            share_used,
            left: format!("{sign}{} of {}", shown(available.unsigned_abs()), shown(limit.capacity())),
        }
    }

    /// Returns the limit, what is left of it, and a bar; `all` is left if every limit is unbounded.
    pub(super) fn cells(tightest: Option<&TightestView>) -> [TableCell; 3] {
        let Some(tightest) = tightest else { return [TableCell::from(""), "all".into(), "".into()] };
        let style = match tightest.share_used {
            share if share >= 1.0 => style::BAD,
            share if share >= NEARLY => style::WARN,
            _ => style::GOOD,
        };
        let bar = TableCell::styled(shown_bar(tightest.share_used, BAR), style);
        [TableCell::from(&tightest.limit), (&tightest.left).into(), bar]
    }
}

impl Answer for TopAnswer {
    fn text(&self, page: &mut TextPage) {
        let name = paint(style::NAME, &self.namespace);
        let in_use = grouped(self.in_use);
        let wait = grouped(self.waiting.len());
        let remarks = &self.remarks;
        page.line(format_args!("namespace {name}, {in_use} in use, {wait} waiting, {}{remarks}", self.at));
        page.gap();
        let headings = ["ENTITY", "RESOURCE", "THIS HOUR", "PER S", "LIMIT", "LEFT", "USED", "HELD"];
        let table = TextTable::new(headings).right(2).right(3).right(5).hide_empty(3).hide_empty(7);
        let table = table.shorten(1).shorten(4);
        let mut table = if self.room.is_screen { table } else { table.wrap(7) };
        for row in &self.rows {
            table.row(row.cells());
        }
        page.table_or_line(&table, "no calls in this hour");
        if self.in_use > self.rows.len() {
            page.line(format_args!("and {} more", counted(self.in_use - self.rows.len(), "row", "rows")));
        }
        waiting_text(&self.waiting, self.room.waiters, self.room.is_screen, page);
        sets_text(&self.sets, self.room.sets, page);
    }
}

/// Leaves out what is less than a hundredth, of which a screen has no room.
fn cents(amount: &str) -> String {
    let end = amount.find('.').map_or(amount.len(), |point| amount.len().min(point + 3));
    amount[..end].into()
}

/// Formats calls per second: with one decimal if there are few, and nothing if there are none.
fn rate_text(per_second: f64) -> String {
    match per_second {
        rate if rate <= 0.0 => String::new(),
        rate if rate < 0.1 => "<0.1".into(),
        rate if rate < 99.95 => format!("{rate:.1}"),
        rate => grouped(format!("{rate:.0}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_money_have_two_decimals_at_most() {
        assert_eq!(["5.502044", "25.5", "1,000"].map(cents), ["5.50", "25.5", "1,000"]);
    }

    #[test]
    fn rates_have_as_many_digits_as_they_are_worth() {
        let texts = [0.0, 0.04, 0.25, 12.34, 99.96, 1_234.5].map(rate_text);
        assert_eq!(texts, ["", "<0.1", "0.2", "12.3", "100", "1,234"]);
    }
}
