//! Everything about one entity.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::Tick;
use tollgate::catalog::{Access, BucketStatus, CatalogError, DEFAULT_RESOURCE};

use crate::context::Context;
use crate::output::{Answer, Cell, Output, Page, Table, grouped, style};
use crate::views::{EntityView, LimitView, StatusView, limit_cells, limit_views, remark_table};

/// Shows an entity. One that was never created is shown if anything is known of it.
pub(super) fn show(context: &Context, id: &str) -> Result<Output> {
    let catalog = context.catalog()?;
    let entity = catalog.entity(id).wait()?;
    let disabled = catalog.is_entity_disabled(id).wait()?;
    let access = catalog.accesses(id).wait()?;
    let limits = catalog.limits_of_entity(id).wait()?;
    let buckets = catalog.buckets(id).wait()?;
    if entity.is_none() && !disabled && access.is_empty() && limits.is_empty() && buckets.is_empty() {
        return Err(CatalogError::EntityNotFound(id.into()).into());
    }
    let now = catalog.backend().clock().now();
    let limits =
        limits.into_iter().map(|(resource, stored)| (resource, limit_views(stored.limits.iter()))).collect();
    Ok(Output::new(ShowAnswer {
        namespace: context.settings.namespace.value.clone(),
        entity: entity.map_or_else(|| EntityView::never_created(id), EntityView::from),
        disabled,
        access: access.into_iter().map(|(resource, access)| (resource, access_name(access))).collect(),
        limits,
        buckets: buckets.iter().map(|bucket| BucketView::of(bucket, now)).collect(),
    }))
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Off => "off",
        Access::On => "on",
    }
}

#[derive(Serialize)]
struct ShowAnswer {
    namespace: String,
    #[serde(flatten)]
    entity: EntityView,
    disabled: bool,
    /// What was said of single resources.
    access: BTreeMap<String, &'static str>,
    limits: BTreeMap<String, Vec<LimitView>>,
    buckets: Vec<BucketView>,
}

#[derive(Serialize)]
struct BucketView {
    resource: String,
    limits: Vec<StatusView>,
}

impl BucketView {
    fn of(bucket: &BucketStatus, now: Tick) -> BucketView {
        let limits = bucket.limits.iter().map(|status| StatusView::of(status, now)).collect();
        BucketView { resource: bucket.resource.clone(), limits }
    }
}

impl Answer for ShowAnswer {
    fn text(&self, page: &mut Page) {
        let EntityView { id, name, children, metadata, created_at, .. } = &self.entity;
        let state = if self.disabled {
            Cell::styled("disabled", style::BAD)
        } else {
            Cell::styled("enabled", style::GOOD)
        };
        let parent = Some(self.entity.parent_text()).filter(|parent| !parent.is_empty());
        page.fields([
            ("entity", Cell::name(id)),
            ("name", name.into()),
            ("parent", parent.map_or_else(|| Cell::from("none"), Cell::from)),
            ("children", grouped(children).into()),
            ("state", state),
            ("created", created_at.as_deref().unwrap_or("never").into()),
        ]);
        if !metadata.is_empty() {
            page.heading("Metadata");
            let mut table = Table::bare().wrap(1);
            metadata.iter().for_each(|(key, value)| table.row([Cell::from(key), value.into()]));
            page.table(&table);
        }
        if !self.access.is_empty() {
            page.heading("Single resources");
            let mut table = Table::new(["RESOURCE", "SWITCHED"]);
            for (resource, access) in &self.access {
                let style = if *access == "off" { style::BAD } else { style::GOOD };
                table.row([Cell::from(resource), Cell::styled(access, style)]);
            }
            page.table(&table);
        }
        page.heading("Limits of its own");
        page.table_or_line(&self.limit_rows(), "none");
        page.heading("Buckets");
        page.table_or_line(&self.bucket_rows(), "none that is in use");
    }
}

impl ShowAnswer {
    fn limit_rows(&self) -> Table {
        let mut table = remark_table("RESOURCE");
        for (resource, limits) in &self.limits {
            let resource = if resource == DEFAULT_RESOURCE { "(all others)" } else { resource };
            let mut first = Some(Cell::from(resource));
            for limit in limits {
                let [name, amount, per, burst, notes] = limit_cells(limit);
                table.row([first.take().unwrap_or_else(|| "".into()), name, amount, per, burst, notes]);
            }
        }
        table
    }

    fn bucket_rows(&self) -> Table {
        let mut table = Table::new(["RESOURCE", "LIMIT", "AVAILABLE", "OF", ""]).right(2).right(3);
        for BucketView { resource, limits } in &self.buckets {
            let mut first = Some(Cell::from(resource));
            for status in limits {
                let [name, left, capacity, full] = status.cells();
                table.row([first.take().unwrap_or_else(|| "".into()), name, left, capacity, full]);
            }
        }
        table
    }
}
