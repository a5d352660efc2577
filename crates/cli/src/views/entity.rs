use std::collections::BTreeMap;

use serde::Serialize;
use tollgate::catalog::Entity;

use crate::output::{TableCell, TextTable};

/// An entity.
#[derive(Serialize)]
pub(crate) struct EntityView {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) cascades: bool,
    pub(crate) children: u64,
    pub(crate) metadata: BTreeMap<String, String>,
    /// `null` for an entity that was never created, and is known by its limits or buckets only.
    pub(crate) created_at: Option<String>,
}

impl EntityView {
    /// Returns the view of an entity that was never created.
    pub(crate) fn never_created(id: &str) -> EntityView {
        EntityView {
            id: id.into(),
            name: id.into(),
            parent: None,
            cascades: false,
            children: 0,
            metadata: BTreeMap::new(),
            created_at: None,
        }
    }

    /// Formats the parent.
    pub(crate) fn parent_text(&self) -> String {
        match (&self.parent, self.cascades) {
            (None, _) => String::new(),
            (Some(parent), true) => format!("{parent} (cascades)"),
            (Some(parent), false) => parent.clone(),
        }
    }
}

impl From<Entity> for EntityView {
    fn from(entity: Entity) -> EntityView {
        let Entity { id, name, parent, cascades, metadata, created_at, children, .. } = entity;
        EntityView { id, name, parent, cascades, children, metadata, created_at: Some(created_at) }
    }
}

/// Returns a table of entities.
pub(crate) fn entity_table<'a>(entities: impl IntoIterator<Item = &'a EntityView>) -> TextTable {
    let mut table = TextTable::new(["ENTITY", "NAME", "PARENT", "CHILDREN", "CREATED"])
        .right(3)
        .wrap(1)
        .wrap(2)
        .hide_empty(1)
        .hide_empty(2)
        .hide_empty(3);
    for entity in entities {
        let name = if entity.name == entity.id { "" } else { &entity.name };
        let children = if entity.children == 0 { String::new() } else { entity.children.to_string() };
        let created_at = entity.created_at.as_deref().unwrap_or("-");
        let parent = TableCell::from(entity.parent_text());
        table.row([
            TableCell::name(&entity.id),
            name.into(),
            parent,
            children.into(),
            TableCell::from(created_at),
        ]);
    }
    table
}
