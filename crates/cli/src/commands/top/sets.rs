//! Limit sets as JSON and as text.

use serde::Serialize;
use tollgate::{StoredSet, Tick};

use super::snapshot;
use super::view::TightestView;
use crate::commands::set::{cooling_us, state};
use crate::output::{TableCell, TextPage, TextTable, counted};

/// A limit set that is in use.
#[derive(Serialize)]
pub(super) struct SetView {
    name: String,
    /// How long its cooldown lasts; `null` without one.
    resumes_in_us: Option<u64>,
    tightest: Option<TightestView>,
    /// Whether a program has opened the set, so that its limits are known.
    #[serde(skip)]
    has_limits: bool,
}

impl SetView {
    pub(super) fn of(set: &StoredSet, now: Tick) -> SetView {
        SetView {
            name: set.name.clone(),
            resumes_in_us: cooling_us(set, now),
            tightest: snapshot::tightest(&set.limits).map(|(status, share)| TightestView::of(status, share)),
            has_limits: !set.limits.is_empty(),
        }
    }
}

/// Adds the sets to a page, if there are any.
pub(super) fn sets_text(sets: &[SetView], max: usize, page: &mut TextPage) {
    if sets.is_empty() {
        return;
    }
    page.gap();
    let mut table = TextTable::new(["LIMIT SET", "STATE", "LIMIT", "LEFT", "USED"]).right(3).shorten(2);
    for set in sets.iter().take(max) {
        let [limit, left, bar] = match set.has_limits {
            true => TightestView::cells(set.tightest.as_ref()),
            false => ["none known", "", ""].map(TableCell::from),
        };
        table.row([TableCell::name(&set.name), state(set.resumes_in_us, false), limit, left, bar]);
    }
    page.table(&table);
    if sets.len() > max {
        page.line(format_args!("and {} more", counted(sets.len() - max, "set", "sets")));
    }
}
