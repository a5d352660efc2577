//! The creation of entities.

use std::collections::BTreeMap;

use tollgate_store::Reply;
use tollgate_store::records::{Change, Fields, Index, Item, Test, Value, Write};

use super::{DELETING, Entity, METADATA_MAX, TEXT_MAX};
use crate::audit::{Action, Subject};
use crate::transaction::{ATTEMPTS_MAX, Commit};
use crate::{Catalog, CatalogError, Result, keys, name};

/// An entity to be created.
///
/// ```
/// use tollgate_catalog::NewEntity;
///
/// let key = NewEntity::new("key-1").name("the first key").parent("project-7").cascades(true);
/// # let _ = key;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a new entity does nothing until it is created"]
pub struct NewEntity {
    id: String,
    name: Option<String>,
    parent: Option<String>,
    cascades: bool,
    metadata: BTreeMap<String, String>,
}

impl NewEntity {
    /// Returns a new entity with this id, without a parent and metadata.
    pub fn new(id: impl Into<String>) -> NewEntity {
        NewEntity { id: id.into(), name: None, parent: None, cascades: false, metadata: BTreeMap::new() }
    }

    /// Sets the display name.
    pub fn name(self, name: impl Into<String>) -> NewEntity {
        NewEntity { name: Some(name.into()), ..self }
    }

    /// Sets the parent, which must exist.
    pub fn parent(self, parent: impl Into<String>) -> NewEntity {
        NewEntity { parent: Some(parent.into()), ..self }
    }

    /// Sets whether its calls are charged to its parent, too. By default they are not.
    pub fn cascades(self, cascades: bool) -> NewEntity {
        NewEntity { cascades, ..self }
    }

    /// Adds a pair of metadata.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> NewEntity {
        self.metadata.insert(key.into(), value.into());
        self
    }

    fn check(&self) -> Result<()> {
        name::ENTITY.check(&self.id)?;
        self.parent.iter().try_for_each(|parent| name::PARENT.check(parent))?;
        self.name.iter().try_for_each(|name| check_text("the name of an entity", name))?;
        if self.metadata.len() > METADATA_MAX {
            let value = format!("{} pairs", self.metadata.len());
            return Err(invalid("metadata", value, format!("at most {METADATA_MAX} pairs")));
        }
        let mut texts = self.metadata.iter().flat_map(|(key, value)| [key, value]);
        if self.metadata.contains_key("") {
            return Err(invalid("a key of metadata", "empty".into(), "at least one character".into()));
        }
        texts.try_for_each(|text| check_text("a text of metadata", text))
    }
}

pub(super) fn check_text(what: &'static str, text: &str) -> Result<()> {
    let length = text.chars().count();
    if length <= TEXT_MAX {
        return Ok(());
    }
    let shown: String = text.chars().take(40).collect();
    Err(invalid(
        what,
        format!("{shown:?}… with {length} characters"),
        format!("at most {TEXT_MAX} characters"),
    ))
}

fn invalid(what: &'static str, value: String, valid: String) -> CatalogError {
    CatalogError::Invalid { what, value, valid }
}

impl Catalog {
    /// Creates an entity.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the entity is created completely or not at all.
    ///
    /// # Errors
    ///
    /// [`EntityExists`](CatalogError::EntityExists),
    /// [`ParentNotFound`](CatalogError::ParentNotFound),
    /// [`ChainTooLong`](CatalogError::ChainTooLong), an invalid name, a deleted namespace, or an
    /// error of the store.
    pub fn create_entity(&self, new: NewEntity) -> Reply<'_, Result<Entity>> {
        Reply::later(async move {
            new.check()?;
            for _ in 0..ATTEMPTS_MAX {
                if let Some(created) = self.try_create(&new).await? {
                    return Ok(created);
                }
            }
            Err(CatalogError::Contended(format!("entity {:?}", new.id)))
        })
    }

    /// Creates the entity; `None` if an ancestor was moved or deleted meanwhile.
    async fn try_create(&self, new: &NewEntity) -> Result<Option<Entity>> {
        let ns = self.namespace_id();
        let item = self.new_item(new);
        let entity = Entity::of(&new.id, &item);
        let mut tx = self.transaction();
        let own = tx.push(Write::Put(item, vec![Test::Absent]));
        if let Some(parent) = &new.parent {
            let Some(ancestors) = self.ancestors(&new.id, parent).await? else { return Ok(None) };
            let mut tests = ancestors.tests_of(parent);
            tests.extend([Test::Exists, Test::AtMost(DELETING.into(), 0)]);
            let counted = vec![Change::Add("children".into(), 1)];
            tx.push(Write::Change(keys::entity(ns, parent), counted, tests));
            ancestors.check_unmoved(&mut tx, &[parent]);
        }
        let details = Fields::from([
            ("name".into(), entity.name.clone().into()),
            ("parent_id".into(), new.parent.clone().into()),
            ("cascade".into(), new.cascades.into()),
        ]);
        tx.audit(Subject::Entity(&new.id), Action::EntityCreated, None, details)?;
        match tx.commit().await? {
            Commit::Done => Ok(Some(entity)),
            Commit::Failed(write) if write == own => Err(CatalogError::EntityExists(new.id.clone())),
            Commit::Failed(_) => Ok(None),
        }
    }

    fn new_item(&self, new: &NewEntity) -> Item {
        let ns = self.namespace_id();
        let metadata: Fields =
            new.metadata.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
        let item = Item::new(keys::entity(ns, &new.id))
            .with("entity_id", new.id.as_str())
            .with("name", new.name.as_ref().unwrap_or(&new.id).as_str())
            .with("parent_id", new.parent.clone())
            .with("cascade", new.cascades)
            .with("metadata", Value::Map(metadata))
            .with("created_at", tollgate_store::usage::iso(self.now()));
        match &new.parent {
            Some(parent) => {
                let key = keys::child_index_key(ns, parent, &new.id);
                item.indexed(Index::Children, key.partition, key.sort)
            }
            None => item,
        }
    }
}
