//! Entities and their parents.

use pyo3::prelude::*;
use tollgate::NewEntity;
use tollgate::catalog::Entity;

use super::{PyCatalog, ask, ask_plain, dict_of, page_of_texts, record};
use crate::input::{TextArgument, TextMap, page};
use crate::pairs::pairs;

fn entity_record(py: Python<'_>, entity: Entity) -> PyResult<Py<PyAny>> {
    let metadata = dict_of(py, entity.metadata, |py, text| Ok(text.into_pyobject(py)?.into_any().unbind()))?;
    let Entity { id, name, parent, cascades, created_at, children, .. } = entity;
    record(py, "Entity", (id, name, parent, cascades, metadata, created_at, children))
}

pairs! { PyCatalog, "Catalog":
    /// Creates an entity. With `cascades` its calls are charged to the parent as well. Raises `AlreadyExists`, and `NotFound` for a parent
    /// that does not exist. An entity that was never created can be used all the same; it has no parent.
    ///
    /// ```python
    /// catalog.create_entity("user-1", name="Ada", parent="team", cascades=True, metadata={"plan": "pro"})
    /// ```
    fn create_entity, create_entity_async (
        entity, /, *, name=None, parent=None, cascades=false, metadata=None
    ) (
        slf,
        entity: TextArgument,
        name: Option<TextArgument>,
        parent: Option<TextArgument>,
        cascades: bool,
        metadata: Option<TextMap>
    ) {
        let mut new = NewEntity::new(entity.0).cascades(cascades);
        if let Some(name) = name {
            new = new.name(name.0);
        }
        if let Some(parent) = parent {
            new = new.parent(parent.0);
        }
        for (key, value) in metadata.map(|metadata| metadata.0).unwrap_or_default() {
            new = new.metadata(key, value);
        }
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.create_entity(new).await }, entity_record)
    }

    /// Returns an entity; `None` if it was never created.
    ///
    /// ```python
    /// catalog.get_entity("user-1").parent
    /// ```
    fn get_entity, get_entity_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.entity(&entity.0).await }, |py, found| {
            found.map(|entity| entity_record(py, entity)).transpose()
        })
    }

    /// Deletes an entity with all of its records but audit events. Raises `NotFound`, and `Conflict` if it has children.
    ///
    /// ```python
    /// catalog.delete_entity("user-1")
    /// ```
    fn delete_entity, delete_entity_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.delete_entity(&entity.0).await })
    }

    /// Returns a page of the ids of all entities that were created. A page may be short even if more follow: go on while it has a `next`.
    ///
    /// ```python
    /// page = catalog.list_entities(limit=100)
    /// more = catalog.list_entities(limit=100, after=page.next)
    /// ```
    fn list_entities, list_entities_async (*, limit=None, after=None) (
        slf,
        limit: Option<&Bound<'_, PyAny>>,
        after: Option<TextArgument>
    ) {
        let (catalog, page) = (slf.get().catalog.clone(), page(limit, after, false)?);
        ask(async move { catalog.entities(page).await }, page_of_texts)
    }

    /// Returns a page of the ids of the children of an entity.
    ///
    /// ```python
    /// catalog.children("team").items
    /// ```
    fn children, children_async (entity, /, *, limit=None, after=None) (
        slf,
        entity: TextArgument,
        limit: Option<&Bound<'_, PyAny>>,
        after: Option<TextArgument>
    ) {
        let (catalog, page) = (slf.get().catalog.clone(), page(limit, after, false)?);
        ask(async move { catalog.children(&entity.0, page).await }, page_of_texts)
    }

    /// Moves an entity to another parent, or to none. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.set_parent("user-1", None)
    /// ```
    fn set_parent, set_parent_async (entity, parent, /) (slf, entity: TextArgument, parent: Option<TextArgument>) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move {
            catalog.set_parent(&entity.0, parent.as_deref()).await
        })
    }

    /// Sets whether the calls of an entity are charged to its parent as well. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.set_cascades("user-1", True)
    /// ```
    fn set_cascades, set_cascades_async (entity, cascades, /) (slf, entity: TextArgument, cascades: bool) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.set_cascades(&entity.0, cascades).await })
    }

    /// Gives an entity another name; its id stays. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.set_name("user-1", "Ada Lovelace")
    /// ```
    fn set_name, set_name_async (entity, name, /) (slf, entity: TextArgument, name: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.set_name(&entity.0, &name.0).await })
    }
}
