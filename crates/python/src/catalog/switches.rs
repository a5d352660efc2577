//! Entities and resources that are disabled, exceptions to that, and cascade policies.

use pyo3::prelude::*;
use tollgate::{Access, Cascade};

use super::limits::NamedLevel;
use super::{PyCatalog, ask, ask_plain, dict_of};
use crate::input::TextArgument;
use crate::pairs::pairs;

fn bool_object(py: Python<'_>, value: bool) -> PyResult<Py<PyAny>> {
    Ok(value.into_pyobject(py)?.to_owned().into_any().unbind())
}

pairs! { PyCatalog, "Catalog":
    /// Disables an entity: its calls raise `Disabled`. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.disable_entity("user-1")
    /// ```
    fn disable_entity, disable_entity_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.disable_entity(&entity.0).await })
    }

    /// Enables an entity again. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.enable_entity("user-1")
    /// ```
    fn enable_entity, enable_entity_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.enable_entity(&entity.0).await })
    }

    /// Returns whether an entity is disabled.
    ///
    /// ```python
    /// catalog.is_entity_disabled("user-1")
    /// ```
    fn is_entity_disabled, is_entity_disabled_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.is_entity_disabled(&entity.0).await })
    }

    /// Disables a resource, but for entities with access of their own. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.disable_resource("gpt-4")
    /// ```
    fn disable_resource, disable_resource_async (resource, /) (slf, resource: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.disable_resource(&resource.0).await })
    }

    /// Enables a resource again. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.enable_resource("gpt-4")
    /// ```
    fn enable_resource, enable_resource_async (resource, /) (slf, resource: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.enable_resource(&resource.0).await })
    }

    /// Returns the resources that are disabled.
    ///
    /// ```python
    /// catalog.disabled_resources()
    /// ```
    fn disabled_resources, disabled_resources_async () (slf) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.disabled_resources().await })
    }

    /// Sets whether an entity may use a resource, whatever holds for others: `True` although the resource is disabled, `False` although it
    /// is not; `None` removes the exception. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.set_access("tester", "gpt-4", True)
    /// ```
    fn set_access, set_access_async (entity, resource, access, /) (
        slf,
        entity: TextArgument,
        resource: TextArgument,
        access: Option<bool>
    ) {
        let access = access.map(|may| if may { Access::On } else { Access::Off });
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.set_access(&entity.0, &resource.0, access).await })
    }

    /// Returns the exception of an entity for a resource; `None` if it has none.
    ///
    /// ```python
    /// catalog.get_access("tester", "gpt-4")
    /// ```
    fn get_access, get_access_async (entity, resource, /) (slf, entity: TextArgument, resource: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.access(&entity.0, &resource.0).await }, |_, access| {
            Ok(access.map(|access| access == Access::On))
        })
    }

    /// Returns the exceptions of an entity, by resource.
    ///
    /// ```python
    /// catalog.accesses_of_entity("tester")
    /// ```
    fn accesses_of_entity, accesses_of_entity_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.accesses(&entity.0).await }, |py, accesses| {
            dict_of(py, accesses, |py, access| bool_object(py, access == Access::On)).map(Bound::unbind)
        })
    }

    /// Sets whether calls are charged to parents as well, for a resource, an entity or both, whatever the entity's own `cascades` says; `None`
    /// removes the policy. The most specific one decides. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.set_cascade(False, resource="budget")
    /// ```
    fn set_cascade, set_cascade_async (cascade, /, *, entity=None, resource=None) (
        slf,
        cascade: Option<bool>,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>
    ) {
        let cascade = cascade.map(|is_on| if is_on { Cascade::On } else { Cascade::Off });
        let (catalog, level) = (slf.get().catalog.clone(), NamedLevel::of(entity, resource));
        ask_plain(async move { catalog.set_cascade(level.level(), cascade).await })
    }

    /// Returns the policy that is stored for a resource, an entity or both; `None` if there is none.
    ///
    /// ```python
    /// catalog.get_cascade(resource="budget")
    /// ```
    fn get_cascade, get_cascade_async (*, entity=None, resource=None) (
        slf,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>
    ) {
        let (catalog, level) = (slf.get().catalog.clone(), NamedLevel::of(entity, resource));
        ask(async move { catalog.cascade(level.level()).await }, |_, cascade| {
            Ok(cascade.map(|cascade| cascade == Cascade::On))
        })
    }
}
