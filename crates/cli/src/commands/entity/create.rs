//! `tollgate entity create` and `delete`.

use anyhow::Result;
use serde::Serialize;
use tollgate::NewEntity;
use tollgate::catalog::Counts;

use crate::args::EntityCreateArgs;
use crate::asking::with_contents;
use crate::context::Context;
use crate::output::{Answer, Output, TextPage};
use crate::views::{EntityView, action_label};

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
    let catalog = context.catalog()?;
    let contents = Contents::of(catalog.counts_of_entity(&entity).wait()?);
    let has_children = catalog.entity(&entity).wait()?.is_some_and(|entity| entity.children > 0);
    // An entity with children cannot be deleted, so there is no question.
    if contents.is_known && !has_children {
        context.confirm_deletion(format_args!("entity {entity}"), || Ok(contents.text()))?;
    }
    context.change(|catalog| Ok(catalog.delete_entity(&entity).wait()?))?;
    Ok(Output::new(EntityDeleteAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity,
        deleted: true,
        contents,
    }))
}

#[derive(Serialize)]
struct CreateAnswer {
    dry_run: bool,
    namespace: String,
    entity: EntityView,
}

#[derive(Serialize)]
struct EntityDeleteAnswer {
    dry_run: bool,
    namespace: String,
    entity: String,
    deleted: bool,
    #[serde(flatten)]
    contents: Contents,
}

/// What is deleted with an entity.
#[derive(Serialize)]
struct Contents {
    /// Levels that have limits.
    limits: u64,
    buckets: u64,
    usage_records: u64,
    #[serde(skip)]
    is_known: bool,
}

impl Contents {
    fn of(counts: Counts) -> Contents {
        let Counts { entity_limits: limits, buckets, usage_records, entities, disabled, .. } = counts;
        let is_known = [entities, disabled, limits, buckets, usage_records].iter().any(|count| *count > 0);
        Contents { limits, buckets, usage_records, is_known }
    }

    fn text(&self) -> String {
        with_contents(&[
            (self.limits, "level of limits", "levels of limits"),
            (self.buckets, "bucket", "buckets"),
            (self.usage_records, "usage record", "usage records"),
        ])
    }
}

impl Answer for CreateAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let parent = match self.entity.parent_text() {
            parent if parent.is_empty() => parent,
            parent => format!(" under {parent}"),
        };
        let action = action_label(self.dry_run, "created", "create");
        page.line(format_args!("{action} entity {}{parent}", self.entity.id));
    }
}

impl Answer for EntityDeleteAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let action = action_label(self.dry_run, "deleted", "delete");
        page.line(format_args!("{action} entity {}{}", self.entity, self.contents.text()));
    }
}
