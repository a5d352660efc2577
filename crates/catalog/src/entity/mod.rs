//! Entities: who is limited, and whose limits count for them as well.

mod ancestors;
mod create;
mod delete;
mod reparent;

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::{Index, Item, Page, Value};

use crate::{Catalog, PageRequest, Result, keys, name};

pub use create::NewEntity;

/// The most pairs of metadata that an entity may have.
pub const METADATA_MAX: usize = 64;

/// The longest text of an entity, in characters: its name, and each key and value of its metadata.
pub const TEXT_MAX: usize = 1_024;

/// While an entity is being deleted this counts 1, so that it gets no children.
const DELETING: &str = "deleting";

/// Anything that is limited, such as a user or a project. One that was never created is limited all the same, and has
/// no parent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entity {
    /// Its id.
    pub id: String,
    /// What people call it; its id unless it was said.
    pub name: String,
    /// Its parent.
    pub parent: Option<String>,
    /// Whether its calls take from its parent too.
    pub cascades: bool,
    /// What else is known.
    pub metadata: BTreeMap<String, String>,
    /// When it was created, such as `2026-11-15T14:00:00Z`.
    pub created_at: String,
    /// How many children it has.
    pub children: u64,
}

impl Catalog {
    /// An entity, if it was created.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<Option<Entity>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let item = self.get(keys::entity(self.namespace_id(), id)).await?;
            Ok(item.map(|item| Entity::of(id, &item)))
        })
    }

    /// The ids of the children of an entity, in their order.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn children<'a>(&'a self, id: &'a str, page: PageRequest) -> Reply<'a, Result<Page<String>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let partition = keys::children_partition(self.namespace_id(), id);
            self.find_entities(Index::Children, page.query(partition, "")).await
        })
    }
}

impl Entity {
    fn of(id: &str, item: &Item) -> Entity {
        let text = |field: &str| item.text(field).map(str::to_owned);
        let metadata = match item.fields.get("metadata") {
            Some(Value::Map(fields)) => fields.iter().filter_map(text_of).collect(),
            _ => BTreeMap::new(),
        };
        Entity {
            id: id.to_owned(),
            name: text("name").unwrap_or_else(|| id.to_owned()),
            parent: text("parent_id"),
            cascades: item.is_set("cascade"),
            metadata,
            created_at: text("created_at").unwrap_or_default(),
            children: item.int("children").and_then(|count| u64::try_from(count).ok()).unwrap_or(0),
        }
    }
}

fn text_of((key, value): (&String, &Value)) -> Option<(String, String)> {
    let value = match value {
        Value::Text(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        _ => return None,
    };
    Some((key.clone(), value))
}
