//! Creating and deleting entities.

use anyhow::Result;
use serde::Serialize;
use tollgate::NewEntity;

use crate::args::EntityCreateArgs;
use crate::context::Context;
use crate::output::{Answer, Output, Page};
use crate::views::{EntityView, deed};

/// Creates an entity.
pub(super) fn create(context: &Context, args: EntityCreateArgs) -> Result<Output> {
    let EntityCreateArgs { entity, name, parent, cascade, metadata } = args;
    let mut new = NewEntity::new(entity).cascades(cascade);
    if let Some(name) = name {
        new = new.name(name);
    }
    if let Some(parent) = parent {
        new = new.parent(parent);
    }
    for (key, value) in metadata {
        new = new.metadata(key, value);
    }
    let created = context.change(|catalog| Ok(catalog.create_entity(new.clone()).wait()?))?;
    Ok(Output::new(CreateAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity: created.into(),
    }))
}

/// Deletes an entity.
pub(super) fn delete(context: &Context, entity: String) -> Result<Output> {
    context.change(|catalog| Ok(catalog.delete_entity(&entity).wait()?))?;
    Ok(Output::new(DeleteAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity,
        deleted: true,
    }))
}

#[derive(Serialize)]
struct CreateAnswer {
    dry_run: bool,
    namespace: String,
    entity: EntityView,
}

#[derive(Serialize)]
struct DeleteAnswer {
    dry_run: bool,
    namespace: String,
    entity: String,
    deleted: bool,
}

impl Answer for CreateAnswer {
    fn text(&self, page: &mut Page) {
        let parent = match self.entity.parent_text() {
            parent if parent.is_empty() => parent,
            parent => format!(" under {parent}"),
        };
        let deed = deed(self.dry_run, "created", "create");
        page.line(format_args!("{deed} entity {}{parent}", self.entity.id));
    }
}

impl Answer for DeleteAnswer {
    fn text(&self, page: &mut Page) {
        let deed = deed(self.dry_run, "deleted", "delete");
        page.line(format_args!("{deed} entity {}, with its limits, buckets and usage", self.entity));
    }
}
