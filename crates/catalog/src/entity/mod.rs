//! Entities: the subjects of limits, and their parents, whose limits may count for them as well.

mod ancestors;
mod create;
mod delete;
mod reparent;

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::{Index, Item, Page, Value};

use crate::{Catalog, PageRequest, Result, keys, name};

pub use create::NewEntity;

/// The most pairs of metadata of an entity.
pub const METADATA_MAX: usize = 64;

/// The longest text of an entity, in characters: its name, and each key and value of its metadata.
pub const TEXT_MAX: usize = 1_024;

/// The field that marks an entity that is being deleted, so that it gets no children.
const DELETING: &str = "deleting";

/// An entity: anything that is limited, such as a user or a project. One that was never created is
/// limited all the same, and has no parent.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{NewEntity, Registry};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// catalog.create_entity(NewEntity::new("user-1").name("Alice")).wait()?;
/// let entity = catalog.entity("user-1").wait()?.expect("it was created");
/// assert_eq!((&*entity.name, entity.parent, entity.children), ("Alice", None, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entity {
    /// The id.
    pub id: String,
    /// The display name; the id by default.
    pub name: String,
    /// The id of the parent.
    pub parent: Option<String>,
    /// True if its calls are charged to its parent, too.
    pub cascades: bool,
    /// Further pairs of keys and values.
    pub metadata: BTreeMap<String, String>,
    /// When it was created, such as `2026-11-15T14:00:00Z`.
    pub created_at: String,
    /// The number of its children.
    pub children: u64,
}

impl Catalog {
    /// Returns an entity, if it was created.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<Option<Entity>>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let item = self.get(keys::entity(self.namespace_id(), id)).await?;
            Ok(item.map(|item| Entity::of(id, &item)))
        })
    }

    /// Returns the ids of the children of an entity, in their order.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
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
