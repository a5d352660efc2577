//! `tollgate entity show`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::{Access, BucketStatus, CatalogError, DEFAULT_RESOURCE};
use tollgate::{Level, Tick};

use crate::commands::cascade::is_on;
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, grouped, style};
use crate::views::{EntityView, LimitView, StatusView, limit_cells, limit_views, remark_table};

/// Shows an entity. One that was never created is shown if it has limits, buckets or settings.
pub(super) fn show(context: &Context, id: &str) -> Result<Output> {
    let catalog = context.catalog()?;
    let entity = catalog.entity(id).wait()?;
    let disabled = catalog.is_entity_disabled(id).wait()?;
    let access = catalog.accesses(id).wait()?;
    let cascade = catalog.cascade(Level::Entity(id)).wait()?.map(is_on);
    let cascade_by_resource = catalog.cascades_of_entity(id).wait()?;
    let limits = catalog.limits_of_entity(id).wait()?;
    let buckets = catalog.buckets(id).wait()?;
    let has_settings = disabled || !access.is_empty() || cascade.is_some() || !cascade_by_resource.is_empty();
    if entity.is_none() && !has_settings && limits.is_empty() && buckets.is_empty() {
        return Err(CatalogError::EntityNotFound(id.into()).into());
    }
    let now = catalog.backend().clock().now();
    let limits =
        limits.into_iter().map(|(resource, stored)| (resource, limit_views(stored.limits.iter()))).collect();
    Ok(Output::new(EntityShowAnswer {
        namespace: context.settings.namespace.value.clone(),
        entity: entity.map_or_else(|| EntityView::never_created(id), EntityView::from),
        disabled,
        access: access.into_iter().map(|(resource, access)| (resource, access_name(access))).collect(),
        cascade,
        cascade_by_resource: cascade_by_resource
            .into_iter()
            .map(|(resource, policy)| (resource, is_on(policy)))
            .collect(),
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
struct EntityShowAnswer {
    namespace: String,
    #[serde(flatten)]
    entity: EntityView,
    disabled: bool,
    /// The settings for single resources.
    access: BTreeMap<String, &'static str>,
    /// Whether its calls cascade, overriding the resource.
    cascade: Option<bool>,
    cascade_by_resource: BTreeMap<String, bool>,
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

impl Answer for EntityShowAnswer {
    fn text(&self, page: &mut TextPage) {
        let EntityView { id, name, children, metadata, created_at, .. } = &self.entity;
        let state = if self.disabled {
            TableCell::styled("disabled", style::BAD)
        } else {
            TableCell::styled("enabled", style::GOOD)
        };
        let parent = Some(self.entity.parent_text()).filter(|parent| !parent.is_empty());
        page.fields([
            ("entity", TableCell::name(id)),
            ("name", name.into()),
            ("parent", parent.map_or_else(|| TableCell::from("none"), TableCell::from)),
            ("children", grouped(children).into()),
            ("state", state),
            ("created", created_at.as_deref().unwrap_or("-").into()),
        ]);
        if !metadata.is_empty() {
            page.heading("Metadata");
            let mut table = TextTable::bare().wrap(1);
            for (key, value) in metadata {
                table.row([TableCell::from(key), value.into()]);
            }
            page.table(&table);
        }
        if let Some(table) = self.access_rows() {
            page.heading("Settings by resource");
            page.table(&table);
        }
        page.heading("Own limits");
        page.table_or_line(&self.limit_rows(), "none");
        page.heading("Buckets");
        page.table_or_line(&self.bucket_rows(), "none in use");
    }
}

impl EntityShowAnswer {
    /// Returns the settings for single resources and for all others, if there are any.
    fn access_rows(&self) -> Option<TextTable> {
        let mut table = TextTable::new(["RESOURCE", "ACCESS", "CASCADE"]).shorten(0);
        let access = |resource: &String| match self.access.get(resource) {
            Some(access) => {
                TableCell::styled(*access, if *access == "off" { style::BAD } else { style::GOOD })
            }
            None => "".into(),
        };
        let cascade = |policy: Option<&bool>| policy.map_or_else(String::new, bool::to_string);
        let resources: BTreeSet<&String> =
            self.access.keys().chain(self.cascade_by_resource.keys()).collect();
        for resource in &resources {
            let cascade = cascade(self.cascade_by_resource.get(*resource));
            table.row([TableCell::from(*resource), access(resource), cascade.into()]);
        }
        if self.cascade.is_some() {
            table.row([TableCell::from("(all others)"), "".into(), cascade(self.cascade.as_ref()).into()]);
        }
        (self.cascade.is_some() || !resources.is_empty()).then_some(table)
    }

    fn limit_rows(&self) -> TextTable {
        let mut table = remark_table("RESOURCE").shorten(0);
        for (resource, limits) in &self.limits {
            let resource = if resource == DEFAULT_RESOURCE { "(all others)" } else { resource };
            let mut first = Some(TableCell::from(resource));
            for limit in limits {
                let [name, amount, per, burst, notes] = limit_cells(limit);
                table.row([first.take().unwrap_or_else(|| "".into()), name, amount, per, burst, notes]);
            }
        }
        table
    }

    fn bucket_rows(&self) -> TextTable {
        let mut table =
            TextTable::new(["RESOURCE", "LIMIT", "AVAILABLE", "OF", ""]).right(2).right(3).shorten(0);
        for BucketView { resource, limits } in &self.buckets {
            let mut first = Some(TableCell::from(resource));
            for status in limits {
                let [name, left, capacity, full] = status.cells();
                table.row([first.take().unwrap_or_else(|| "".into()), name, left, capacity, full]);
            }
        }
        table
    }
}
