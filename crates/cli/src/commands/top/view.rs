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
use crate::output::{Answer, TableCell, TextPage, TextTable, grouped};

/// The width of a bar.
const BAR: usize = 8;

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
}

#[derive(Serialize)]
struct TopRowView {
    entity: String,
    resource: String,
    calls: u64,
    calls_change: Option<u64>,
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
        }
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
            used: row.used.clone(),
            tightest,
            held: row.held().map(|(name, held, _)| (name.to_owned(), held)).collect(),
            held_text: held_text.join(", "),
        }
    }

    fn cells(&self) -> [TableCell; 8] {
        let change = self.calls_change.filter(|change| *change > 0);
        let change = change.map(|change| format!("+{}", grouped(change))).unwrap_or_default();
        let [limit, left, bar] = TightestView::cells(self.tightest.as_ref());
        let entity = TableCell::name(&self.entity);
        let resource = TableCell::from(&self.resource);
        let held = TableCell::from(&self.held_text);
        [entity, resource, grouped(self.calls).into(), change.into(), limit, left, bar, held]
    }
}

impl TightestView {
    pub(super) fn of(status: &Status, share_used: f64) -> TightestView {
        let limit = status.limit();
        let available = status.available();
        let sign = if available < 0 { "-" } else { "" };
        let shown = |amount: u64| grouped(limit_text::amount(limit, amount));
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
        let bar = TableCell::styled(bar(tightest.share_used), style);
        [TableCell::from(&tightest.limit), (&tightest.left).into(), bar]
    }
}

impl Answer for TopAnswer {
    fn text(&self, page: &mut TextPage) {
        let name = paint(style::NAME, &self.namespace);
        let in_use = grouped(self.in_use);
        let wait = grouped(self.waiting.len());
        page.line(format_args!("namespace {name}, {in_use} in use, {wait} waiting, {}", self.at));
        page.gap();
        let mut table =
            TextTable::new(["ENTITY", "RESOURCE", "ADMITTED", "", "LIMIT", "LEFT", "USED", "HELD"])
                .right(2)
                .right(3)
                .right(5)
                .hide_empty(3)
                .hide_empty(7)
                .wrap(7)
                .shorten(0)
                .shorten(1);
        for row in &self.rows {
            table.row(row.cells());
        }
        page.table_or_line(&table, "no calls in this hour");
        waiting_text(&self.waiting, self.room.waiters, page);
        sets_text(&self.sets, self.room.sets, page);
    }
}

/// Draws a share as a bar, in eighths of a column.
fn bar(share: f64) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar.extend(std::iter::repeat_n('░', BAR - bar.chars().count()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(0.0), "░░░░░░░░");
        assert_eq!(bar(0.5), "████░░░░");
        assert_eq!(bar(0.55), "████▍░░░");
        assert_eq!(bar(7.0), "████████");
    }
}
