//! `tollgate resource`.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use tollgate::Level;

use super::{capacity, cascade, disable, stored_limits};
use crate::args::ResourceCommand;
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, style};
use crate::views::{LimitView, OwnedLevel, limit_cells, limit_views, remark_table};

/// Runs a command for resources.
pub(super) fn run(context: &Context, command: ResourceCommand) -> Result<Output> {
    match command {
        ResourceCommand::SetDefaults { resource, limits } => {
            stored_limits::set(context, OwnedLevel::resource(resource), &limits)
        }
        ResourceCommand::GetDefaults { resource } => {
            stored_limits::get(context, &OwnedLevel::resource(resource))
        }
        ResourceCommand::DeleteDefaults { resource } => {
            stored_limits::delete(context, &OwnedLevel::resource(resource))
        }
        ResourceCommand::Capacity { resource, limit } => capacity::capacity(context, resource, limit),
        ResourceCommand::List => list(context),
        ResourceCommand::SetCascade { resource, cascade } => {
            cascade::set(context, &OwnedLevel::resource(resource), Some(cascade))
        }
        ResourceCommand::UnsetCascade { resource } => {
            cascade::set(context, &OwnedLevel::resource(resource), None)
        }
        ResourceCommand::Disable { resource } => {
            disable::toggle(context, disable::DisableTarget::Resource(resource), disable::Toggle::Off)
        }
        ResourceCommand::Enable { resource } => {
            disable::toggle(context, disable::DisableTarget::Resource(resource), disable::Toggle::On)
        }
    }
}

fn list(context: &Context) -> Result<Output> {
    let catalog = context.catalog()?;
    let mut resources: BTreeMap<String, ListedResource> = BTreeMap::new();
    for resource in catalog.resources_with_limits().wait()? {
        let stored = catalog.limits(Level::Resource(&resource)).wait()?;
        let limits = stored.map(|stored| limit_views(stored.limits.iter())).unwrap_or_default();
        resources.insert(resource.clone(), ListedResource { limits, ..ListedResource::of(resource) });
    }
    for resource in catalog.disabled_resources().wait()? {
        let listed = resources.entry(resource).or_insert_with_key(|name| ListedResource::of(name.clone()));
        listed.disabled = true;
    }
    for (resource, policy) in catalog.cascades_of_resources().wait()? {
        let listed = resources.entry(resource).or_insert_with_key(|name| ListedResource::of(name.clone()));
        listed.cascade = Some(cascade::is_on(policy));
    }
    let namespace = context.settings.namespace.value.clone();
    Ok(Output::new(ResourceListAnswer { namespace, resources: resources.into_values().collect() }))
}

#[derive(Serialize)]
struct ResourceListAnswer {
    namespace: String,
    resources: Vec<ListedResource>,
}

#[derive(Serialize)]
struct ListedResource {
    resource: String,
    disabled: bool,
    cascade: Option<bool>,
    limits: Vec<LimitView>,
}

impl ListedResource {
    fn of(resource: String) -> ListedResource {
        ListedResource { resource, disabled: false, cascade: None, limits: Vec::new() }
    }

    /// Returns its name with its settings.
    fn cell(&self) -> TableCell {
        let cascade = match self.cascade {
            Some(true) => " (cascades)",
            Some(false) => " (does not cascade)",
            None => "",
        };
        if self.disabled {
            return TableCell::styled(format!("{} (disabled){cascade}", self.resource), style::BAD);
        }
        TableCell::name(format!("{}{cascade}", self.resource))
    }
}

impl Answer for ResourceListAnswer {
    fn text(&self, page: &mut TextPage) {
        let mut table = remark_table("RESOURCE");
        for listed in &self.resources {
            let limits = &listed.limits;
            let mut first = Some(listed.cell());
            if limits.is_empty() {
                let first = first.take().unwrap_or_else(|| "".into());
                table.row([first, TableCell::from("none"), "".into(), "".into(), "".into(), "".into()]);
            }
            for limit in limits {
                let [name, amount, per, burst, notes] = limit_cells(limit);
                table.row([first.take().unwrap_or_else(|| "".into()), name, amount, per, burst, notes]);
            }
        }
        page.table_or(&table, "no resource has its own limits");
    }
}
