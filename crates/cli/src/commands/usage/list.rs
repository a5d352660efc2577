//! `tollgate usage list`: the usage of each window.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::{Cursor, Page as CatalogPage, UsageRow};
use tollgate::store::usage::iso;

use crate::args::UsageListArgs;
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, grouped};
use crate::time_text;
use crate::units::Units;

/// Lists rows of usage.
pub(super) fn list(context: &Context, args: &UsageListArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    let query = args.selection.query(catalog.backend().clock().now());
    let mut request = args.page.request();
    let mut rows = Vec::new();
    let max = usize::from(args.page.max);
    // A page may be short even if more follow.
    let next = loop {
        request.limit = max - rows.len();
        let found = catalog.usage(query.clone().page(request.clone())).wait();
        let CatalogPage { items, next } = found.map_err(|why| args.page.explain(why))?;
        rows.extend(items);
        match next {
            Some(next) if rows.len() < max => request = request.after(next),
            next => break next.map(|Cursor(text)| text),
        }
    };
    context.note_next(&next);
    let buckets = rows.iter().map(|row| (row.entity.as_str(), row.resource.as_str()));
    let units = Units::of_used(&catalog, buckets);
    Ok(Output::new(UsageListAnswer {
        namespace: context.settings.namespace.value.clone(),
        window: args.selection.window_word(),
        rows: rows.into_iter().map(UsageRowView::from).collect(),
        next,
        units,
    }))
}

#[derive(Serialize)]
struct UsageListAnswer {
    namespace: String,
    window: &'static str,
    rows: Vec<UsageRowView>,
    next: Option<String>,
    #[serde(skip)]
    units: Units,
}

#[derive(Serialize)]
struct UsageRowView {
    start: String,
    entity: String,
    resource: String,
    calls: u64,
    used: BTreeMap<String, i64>,
    /// The part of it that calls of children used.
    of_children: ChildrenView,
    #[serde(skip)]
    shown: String,
}

#[derive(Serialize)]
struct ChildrenView {
    calls: u64,
    used: BTreeMap<String, i64>,
}

impl From<UsageRow> for UsageRowView {
    fn from(row: UsageRow) -> UsageRowView {
        let UsageRow {
            entity, resource, window, start, amounts, events, child_amounts, child_events, ..
        } = row;
        let shown = time_text::window_start(window, start);
        let of_children = ChildrenView { calls: child_events, used: child_amounts };
        UsageRowView { start: iso(start), entity, resource, calls: events, used: amounts, of_children, shown }
    }
}

impl Answer for UsageListAnswer {
    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::new(["FROM", "ENTITY", "RESOURCE", "ADMITTED", "USED", "OF CHILDREN"]);
        table = table.right(3).shorten(2).wrap(4).wrap(5).hide_empty(5);
        for UsageRowView { entity, resource, calls, used, of_children, shown, .. } in &self.rows {
            let text = |used: &BTreeMap<String, i64>| {
                let used =
                    used.iter().map(|(limit, amount)| format!("{limit} {}", self.units.show(limit, *amount)));
                used.collect::<Vec<_>>().join(", ")
            };
            let of_children = match of_children {
                ChildrenView { calls: 0, used } if used.is_empty() => String::new(),
                ChildrenView { calls: 1, used } => format!("1 call, {}", text(used)),
                ChildrenView { calls, used } => format!("{} calls, {}", grouped(calls), text(used)),
            };
            let entity = TableCell::name(entity);
            let resource = TableCell::from(resource);
            let calls = grouped(calls).into();
            table.row([
                TableCell::from(shown),
                entity,
                resource,
                calls,
                text(used).into(),
                of_children.into(),
            ]);
        }
        page.table_or(&table, "no usage");
    }
}
