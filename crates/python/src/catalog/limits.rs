//! Stored limits, on four levels: an entity for a resource, an entity, a resource, the system.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tollgate::catalog::{LevelChange, ManagedSet, StoredLimits, Target};
use tollgate::{Level, Limits};

use super::{PyCatalog, ask, ask_plain, dict_of, page_of_texts, record};
use crate::amount::shown;
use crate::error::invalid;
use crate::input::{LimitList, TextArgument, one_of, page};
use crate::limit::tuple_of;
use crate::limiter::POLICIES;
use crate::pairs::pairs;
use crate::set_settings::whole;

/// A level that outlives the arguments of its call.
pub(super) struct NamedLevel {
    entity: Option<String>,
    resource: Option<String>,
}

impl NamedLevel {
    pub(super) fn of(entity: Option<TextArgument>, resource: Option<TextArgument>) -> NamedLevel {
        NamedLevel { entity: entity.map(|name| name.0), resource: resource.map(|name| name.0) }
    }

    pub(super) fn level(&self) -> Level<'_> {
        match (self.entity.as_deref(), self.resource.as_deref()) {
            (Some(entity), Some(resource)) => Level::EntityResource(entity, resource),
            (Some(entity), None) => Level::Entity(entity),
            (None, Some(resource)) => Level::Resource(resource),
            (None, None) => Level::System,
        }
    }
}

fn stored_record(py: Python<'_>, stored: StoredLimits) -> PyResult<Py<PyAny>> {
    let policy = stored.on_unavailable.map(|policy| policy.name());
    record(py, "StoredLimits", (tuple_of(py, &stored.limits)?, policy, stored.config_version))
}

fn managed_record(py: Python<'_>, set: &ManagedSet) -> PyResult<Py<PyAny>> {
    let pair = |level: Level<'_>| match level {
        Level::EntityResource(entity, resource) => (Some(entity.to_owned()), Some(resource.to_owned())),
        Level::Entity(entity) => (Some(entity.to_owned()), None),
        Level::Resource(resource) => (None, Some(resource.to_owned())),
        _ => (None, None),
    };
    let levels: Vec<_> = set.levels().map(pair).collect();
    record(py, "ManagedSet", (set.name(), set.revision(), PyTuple::new(py, levels)?))
}

/// Reads one change of `apply_limits`.
fn change_of(change: &Bound<'_, PyAny>) -> PyResult<(NamedLevel, Option<Limits>)> {
    let py = change.py();
    let refuse = || {
        let text = format!(
            "{} is no change; write a dict with limits (None deletes them), and with entity, resource, both or neither",
            shown(change)
        );
        invalid(py, text)
    };
    let dict = change.cast::<PyDict>().map_err(|_| refuse())?.copy()?;
    let is_known = |key: Bound<'_, PyAny>| {
        key.extract::<String>().is_ok_and(|key| ["entity", "resource", "limits"].contains(&key.as_str()))
    };
    if !dict.keys().iter().all(is_known) {
        return Err(refuse());
    }
    let text = |name: &str| match dict.get_item(name)? {
        Some(value) if !value.is_none() => value.extract::<TextArgument>().map(Some),
        _ => Ok(None),
    };
    let level = NamedLevel::of(text("entity")?, text("resource")?);
    let limits = dict.get_item("limits")?.ok_or_else(refuse)?;
    let limits = if limits.is_none() { None } else { Some(limits.extract::<LimitList>()?.0) };
    Ok((level, limits))
}

pairs! { PyCatalog, "Catalog":
    /// Stores the limits of a level: of an entity for a resource, of an entity, of a resource, or of the system if neither is named. They
    /// replace all that the level had.
    ///
    /// ```python
    /// catalog.set_limits([tg.per_minute("rpm", 500), tg.per_day("rpd", 10_000)], resource="gpt-4")
    /// ```
    fn set_limits, set_limits_async (limits, *, entity=None, resource=None) (
        slf,
        limits: LimitList,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>
    ) {
        let (catalog, level) = (slf.get().catalog.clone(), NamedLevel::of(entity, resource));
        ask_plain(async move { catalog.set_limits(level.level(), &limits.0).await })
    }

    /// Stores the limits of a level unless it has exactly these. Returns whether that changed anything.
    ///
    /// ```python
    /// catalog.ensure_limits([tg.per_minute("rpm", 500)], resource="gpt-4")
    /// ```
    fn ensure_limits, ensure_limits_async (limits, *, entity=None, resource=None) (
        slf,
        limits: LimitList,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>
    ) {
        let (catalog, level) = (slf.get().catalog.clone(), NamedLevel::of(entity, resource));
        ask_plain(async move { catalog.ensure_limits(level.level(), &limits.0).await })
    }

    /// Stores the limits of the system, and what to do while the store does not answer: "block", "allow", "local", or `None` for the
    /// default.
    ///
    /// ```python
    /// catalog.set_system_limits([tg.per_minute("rpm", 60)], on_unavailable="allow")
    /// ```
    fn set_system_limits, set_system_limits_async (limits, *, on_unavailable=None) (
        slf,
        limits: LimitList,
        on_unavailable: Option<TextArgument>
    ) {
        let policy = |word: TextArgument| one_of(slf.py(), "on_unavailable", &word.0, &POLICIES);
        let policy = on_unavailable.map(policy).transpose()?;
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.set_system_limits(&limits.0, policy).await })
    }

    /// Returns what is stored on a level; `None` if nothing is. The levels are named as for `set_limits`.
    ///
    /// ```python
    /// catalog.get_limits(resource="gpt-4").limits
    /// ```
    fn get_limits, get_limits_async (*, entity=None, resource=None) (
        slf,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>
    ) {
        let (catalog, level) = (slf.get().catalog.clone(), NamedLevel::of(entity, resource));
        ask(async move { catalog.limits(level.level()).await }, |py, stored| {
            stored.map(|stored| stored_record(py, stored)).transpose()
        })
    }

    /// Deletes the limits of a level. Returns whether there were any.
    ///
    /// ```python
    /// catalog.delete_limits(entity="user-1", resource="gpt-4")
    /// ```
    fn delete_limits, delete_limits_async (*, entity=None, resource=None) (
        slf,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>
    ) {
        let (catalog, level) = (slf.get().catalog.clone(), NamedLevel::of(entity, resource));
        ask_plain(async move { catalog.delete_limits(level.level()).await })
    }

    /// Returns what is stored for an entity, by resource; its default has the name `_default_`.
    ///
    /// ```python
    /// catalog.limits_of_entity("user-1")["gpt-4"].limits
    /// ```
    fn limits_of_entity, limits_of_entity_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.limits_of_entity(&entity.0).await }, |py, stored| {
            dict_of(py, stored, stored_record).map(Bound::unbind)
        })
    }

    /// Returns the resources that have limits of their own.
    ///
    /// ```python
    /// catalog.resources_with_limits()
    /// ```
    fn resources_with_limits, resources_with_limits_async () (slf) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.resources_with_limits().await })
    }

    /// Returns a page of the entities that have limits of their own for a resource, or as their default.
    ///
    /// ```python
    /// catalog.entities_with_limits("gpt-4").items
    /// ```
    fn entities_with_limits, entities_with_limits_async (resource=None, /, *, limit=None, after=None) (
        slf,
        resource: Option<TextArgument>,
        limit: Option<&Bound<'_, PyAny>>,
        after: Option<TextArgument>
    ) {
        let resource = resource.map_or_else(|| tollgate::catalog::DEFAULT_RESOURCE.to_owned(), |it| it.0);
        let (catalog, page) = (slf.get().catalog.clone(), page(limit, after, false)?);
        ask(async move { catalog.entities_with_limits(&resource, page).await }, page_of_texts)
    }

    /// Returns how many entities have limits of their own, by resource.
    ///
    /// ```python
    /// catalog.resources_with_entity_limits()
    /// ```
    fn resources_with_entity_limits, resources_with_entity_limits_async () (slf) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move { catalog.resources_with_entity_limits().await })
    }

    /// Changes the limits of several levels, all or nothing: a list of dicts with `limits` (`None` deletes them) and `entity`, `resource`,
    /// both or neither. With `managed_set` the levels belong to that set from now on. With `seen`, the revision of the set that the changes
    /// were computed from (0 if there was none), it raises `Conflict` if another process was faster. Returns the new revision then.
    ///
    /// ```python
    /// catalog.apply_limits([{"resource": "gpt-4", "limits": [tg.per_minute("rpm", 500)]}, {"entity": "bob", "limits": None}])
    /// ```
    fn apply_limits, apply_limits_async (changes, /, *, managed_set=None, seen=None) (
        slf,
        changes: &Bound<'_, PyAny>,
        managed_set: Option<TextArgument>,
        seen: Option<&Bound<'_, PyAny>>
    ) {
        let py = slf.py();
        let changes: Vec<_> =
            changes.try_iter()?.map(|change| change_of(&change?)).collect::<PyResult<_>>()?;
        let seen = seen.map(|seen| whole("seen", seen, 0, u64::MAX)).transpose()?;
        if seen.is_some() && managed_set.is_none() {
            return Err(invalid(py, "seen is the revision of a managed set, but no managed_set is named"));
        }
        let catalog = slf.get().catalog.clone();
        ask_plain(async move {
            let changes: Vec<_> = changes
                .iter()
                .map(|(level, limits)| LevelChange {
                    level: level.level(),
                    target: limits.as_ref().map_or(Target::Nothing, Target::Limits),
                })
                .collect();
            match (&managed_set, seen) {
                (Some(set), Some(seen)) => catalog.apply_limits_since(&set.0, seen, &changes).await.map(Some),
                (set, _) => {
                    let set = set.as_ref().map(|set| set.0.as_str());
                    catalog.apply_limits(set, &changes).await.map(|()| None)
                }
            }
        })
    }

    /// Returns the managed sets: which levels are managed together, such as by a file of limits.
    ///
    /// ```python
    /// [set.name for set in catalog.managed_sets()]
    /// ```
    fn managed_sets, managed_sets_async () (slf) {
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.managed_sets().await }, |py, sets| {
            sets.iter().map(|set| managed_record(py, set)).collect::<PyResult<Vec<_>>>()
        })
    }
}
