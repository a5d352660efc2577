//! `tollgate set list` and `show`.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tollgate::{StoredSet, StoredSets, Tick};

use super::{sets, unknown};
use crate::args::{SetArgs, SetNamespaceArgs};
use crate::context::Context;
use crate::duration_text;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, style};
use crate::views::{LimitView, StatusView, limit_table, limit_views};

/// The page size of listing.
const PAGE: usize = 1_000;

/// The maximum number of sets that are listed.
const SETS_MAX: usize = 10_000;

/// The state of a limit set.
#[derive(Serialize)]
struct StoredView {
    name: String,
    /// Whether all limits are full and there is no cooldown.
    idle: bool,
    /// How long the cooldown lasts; `null` without one.
    resumes_in_us: Option<u64>,
    limits: Vec<LimitView>,
    status: Vec<StatusView>,
}

/// Lists all sets by name, also those whose bucket was evicted because it was full.
pub(in crate::commands) fn all_sets(sets: &StoredSets) -> Result<Vec<StoredSet>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = sets.list(after, PAGE).wait()?;
        found.extend(page.items);
        after = page.next.filter(|_| found.len() < SETS_MAX);
        if after.is_none() {
            found.sort_by(|one, two| one.name.cmp(&two.name));
            return Ok(found);
        }
    }
}

/// Lists the sets of a namespace.
pub(super) fn list(context: &Context, location: SetNamespaceArgs) -> Result<Output> {
    let store = context.store_to_read()?;
    let found = all_sets(&sets(context, store.clone(), &location))?;
    let now = store.clock().now();
    let sets = found.iter().map(|set| StoredView::of(set, now)).collect();
    Ok(Output::new(SetListAnswer { namespace: location.namespace, sets }))
}

/// Shows one set.
pub(super) fn show(context: &Context, SetArgs { name, location }: SetArgs) -> Result<Output> {
    let store = context.store_to_read()?;
    let set = sets(context, store.clone(), &location).get(&name).wait()?;
    let set = set.ok_or_else(|| unknown(&name, &location))?;
    let set = StoredView::of(&set, store.clock().now());
    Ok(Output::new(SetShowAnswer { namespace: location.namespace, set }))
}

impl StoredView {
    fn of(set: &StoredSet, now: Tick) -> StoredView {
        StoredView {
            name: set.name.clone(),
            idle: set.is_idle(),
            resumes_in_us: cooling_us(set, now),
            limits: limit_views(set.limits.iter().map(|status| status.limit())),
            status: set.limits.iter().map(|status| StatusView::of(status, now)).collect(),
        }
    }
}

/// Returns how long the cooldown of a set still lasts, if there is one.
pub(super) fn cooling(set: &StoredSet, now: Tick) -> Option<Duration> {
    set.cooling_until.map(|until| until.since(now).to_duration()).filter(|left| !left.is_zero())
}

/// Returns how long the cooldown of a set still lasts, in microseconds.
pub(in crate::commands) fn cooling_us(set: &StoredSet, now: Tick) -> Option<u64> {
    cooling(set, now).map(|left| u64::try_from(left.as_micros()).unwrap_or(u64::MAX))
}

/// Formats the state of a set.
pub(in crate::commands) fn state(resumes_in_us: Option<u64>, is_idle: bool) -> TableCell {
    match resumes_in_us.map(Duration::from_micros) {
        None if is_idle => TableCell::styled("idle", style::GOOD),
        None => TableCell::styled("ready", style::GOOD),
        Some(left) => {
            TableCell::styled(format!("cooling down, {}", duration_text::roughly(left)), style::WARN)
        }
    }
}

#[derive(Serialize)]
struct SetListAnswer {
    namespace: String,
    sets: Vec<StoredView>,
}

#[derive(Serialize)]
struct SetShowAnswer {
    namespace: String,
    set: StoredView,
}

impl Answer for SetListAnswer {
    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::new(["SET", "STATE", "LIMIT", "AVAILABLE", "OF", ""]).right(3).right(4);
        for set in &self.sets {
            let mut first = Some((TableCell::name(&set.name), state(set.resumes_in_us, set.idle)));
            if set.status.is_empty() {
                let (name, state) = first.take().unwrap_or_else(|| ("".into(), "".into()));
                table.row([name, state, TableCell::from("none known"), "".into(), "".into(), "".into()]);
            }
            for status in &set.status {
                let (name, state) = first.take().unwrap_or_else(|| ("".into(), "".into()));
                let [limit, left, capacity, full] = status.cells();
                table.row([name, state, limit, left, capacity, full]);
            }
        }
        page.table_or(&table, format_args!("no program has opened a limit set in {:?}", self.namespace));
    }
}

impl Answer for SetShowAnswer {
    fn text(&self, page: &mut TextPage) {
        let set = &self.set;
        page.fields([
            ("set", TableCell::name(&set.name)),
            ("namespace", (&self.namespace).into()),
            ("state", state(set.resumes_in_us, set.idle)),
        ]);
        page.heading("Limits in force");
        page.table_or_line(&limit_table(&set.limits), "none known");
        page.heading("Available");
        let mut table = TextTable::new(["LIMIT", "AVAILABLE", "OF", ""]).right(1).right(2);
        for status in &set.status {
            table.row(status.cells());
        }
        page.table_or_line(&table, "none known");
    }
}
