//! Lists of entities.

use std::collections::BTreeSet;

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::{CatalogError, Cursor, DEFAULT_RESOURCE, Page as CatalogPage, PageRequest};
use tollgate::{Catalog, Level};

use crate::args::{EntityListArgs, PageArgs};
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, grouped};
use crate::views::{EntityView, LimitView, entity_table, limit_texts, limit_views};

/// The maximum number of entities with limits that are read to find those that were never created.
const IDS_SEEN_MAX: usize = 10_000;

/// Lists the children of an entity.
pub(super) fn children(context: &Context, entity: String, page: &PageArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    let (ids, next) = fill(page, |page| catalog.children(&entity, page).wait())?;
    let entities = entities(&catalog, &ids)?;
    context.note_next(&next);
    let namespace = context.settings.namespace.value.clone();
    Ok(Output::new(ChildrenAnswer { namespace, parent: entity, entities, next }))
}

/// Returns at most `most` entities that were never created and have their own limits, by id. They come after those that were
/// created, on the last page.
fn never_created(catalog: &Catalog, most: usize) -> Result<Vec<EntityView>> {
    let mut ids = BTreeSet::new();
    for resource in catalog.resources_with_entity_limits().wait()?.into_keys() {
        let mut page = PageRequest::default();
        loop {
            let found = catalog.entities_with_limits(&resource, page.clone()).wait()?;
            ids.extend(found.items);
            match found.next {
                Some(next) if ids.len() < IDS_SEEN_MAX => page = page.after(next),
                _ => break,
            }
        }
    }
    let mut entities = Vec::new();
    for id in ids {
        if entities.len() == most {
            break;
        }
        if catalog.entity(&id).wait()?.is_none() {
            entities.push(EntityView::never_created(&id));
        }
    }
    Ok(entities)
}

/// Lists entities: those that were created, or those that have their own limits.
pub(super) fn list(context: &Context, args: &EntityListArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    let resource = args.with_custom_limits.clone();
    let (ids, next) = fill(&args.page, |page| match &resource {
        None => catalog.entities(page).wait(),
        Some(resource) => catalog.entities_with_limits(resource, page).wait(),
    })?;
    let entities = match &resource {
        None => {
            let mut known = entities(&catalog, &ids)?;
            if next.is_none() {
                let room = usize::from(args.page.max) - known.len();
                let mut implicit = never_created(&catalog, room + 1)?;
                if implicit.len() > room {
                    implicit.truncate(room);
                    context.queue_note(
                        "more entities have limits and were never created; a larger --max shows them",
                    );
                }
                known.extend(implicit);
            }
            known.into_iter().map(|entity| ListedEntity { entity, limits: None }).collect()
        }
        Some(resource) => ids.iter().map(|id| limited(&catalog, id, resource)).collect::<Result<_>>()?,
    };
    context.note_next(&next);
    let namespace = context.settings.namespace.value.clone();
    Ok(Output::new(EntityListAnswer { namespace, resource, entities, next }))
}

/// Returns an entity, created or not, with its own limits for a resource.
fn limited(catalog: &Catalog, id: &str, resource: &str) -> Result<ListedEntity> {
    let level = match resource {
        DEFAULT_RESOURCE => Level::Entity(id),
        resource => Level::EntityResource(id, resource),
    };
    let stored = catalog.limits(level).wait()?;
    let limits = stored.map(|stored| limit_views(stored.limits.iter())).unwrap_or_default();
    let entity = catalog.entity(id).wait()?.map_or_else(|| EntityView::never_created(id), EntityView::from);
    Ok(ListedEntity { entity, limits: Some(limits) })
}

/// Lists the resources for which entities have their own limits.
pub(super) fn resources(context: &Context) -> Result<Output> {
    let counted = context.catalog()?.resources_with_entity_limits().wait()?;
    let resources =
        counted.into_iter().map(|(resource, entities)| CountedResource { resource, entities }).collect();
    Ok(Output::new(ResourcesAnswer { namespace: context.settings.namespace.value.clone(), resources }))
}

/// Reads pages until there are as many rows as were asked for: a page may be short even if more follow.
fn fill(
    page: &PageArgs,
    ask: impl Fn(PageRequest) -> Result<CatalogPage<String>, CatalogError>,
) -> Result<(Vec<String>, Option<String>)> {
    let mut request = page.request();
    let mut found = Vec::new();
    loop {
        request.limit = usize::from(page.max) - found.len();
        let CatalogPage { items, next } = ask(request.clone()).map_err(|why| page.explain(why))?;
        found.extend(items);
        match next {
            Some(next) if found.len() < usize::from(page.max) => request = request.after(next),
            next => return Ok((found, next.map(|Cursor(text)| text))),
        }
    }
}

/// Returns the entities of these ids. An entity that was deleted meanwhile is left out.
fn entities(catalog: &Catalog, ids: &[String]) -> Result<Vec<EntityView>> {
    let mut entities = Vec::with_capacity(ids.len());
    for id in ids {
        entities.extend(catalog.entity(id).wait()?.map(EntityView::from));
    }
    Ok(entities)
}

#[derive(Serialize)]
struct ChildrenAnswer {
    namespace: String,
    parent: String,
    entities: Vec<EntityView>,
    next: Option<String>,
}

#[derive(Serialize)]
struct EntityListAnswer {
    namespace: String,
    /// `null` unless `--with-custom-limits` is given; the same for the limits of each entity.
    resource: Option<String>,
    entities: Vec<ListedEntity>,
    next: Option<String>,
}

#[derive(Serialize)]
struct ListedEntity {
    #[serde(flatten)]
    entity: EntityView,
    limits: Option<Vec<LimitView>>,
}

#[derive(Serialize)]
struct ResourcesAnswer {
    namespace: String,
    resources: Vec<CountedResource>,
}

#[derive(Serialize)]
struct CountedResource {
    resource: String,
    entities: u64,
}

impl Answer for ChildrenAnswer {
    fn text(&self, page: &mut TextPage) {
        let nothing = format!("entity {} has no children", self.parent);
        page.table_or(&entity_table(&self.entities), nothing);
    }
}

impl Answer for EntityListAnswer {
    fn text(&self, page: &mut TextPage) {
        let Some(resource) = &self.resource else {
            let table = entity_table(self.entities.iter().map(|listed| &listed.entity));
            return page.table_or(&table, "no entities");
        };
        let mut table = TextTable::new(["ENTITY", "LIMITS"]).wrap(1);
        for ListedEntity { entity, limits } in &self.entities {
            let limits = limit_texts(limits.as_deref().unwrap_or_default());
            table.row([TableCell::name(&entity.id), limits.into()]);
        }
        page.table_or(&table, format_args!("no entity has its own limits for {resource}"));
    }
}

impl Answer for ResourcesAnswer {
    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::new(["RESOURCE", "ENTITIES"]).right(1);
        for CountedResource { resource, entities } in &self.resources {
            table.row([TableCell::name(resource), grouped(entities).into()]);
        }
        page.table_or(&table, "no entity has its own limits");
    }
}
