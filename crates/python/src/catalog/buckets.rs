//! Buckets: credit, resets and status; and counts.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tollgate::Tick;
use tollgate::catalog::{BucketStatus, Counts, ResourceCapacity};

use super::{PyCatalog, ask, ask_plain, record};
use crate::demand::{NoUnits, owned_demand};
use crate::input::TextArgument;
use crate::pairs::pairs;
use crate::status::PyStatus;

fn bucket_record(py: Python<'_>, bucket: &BucketStatus, now: Tick) -> PyResult<Py<PyAny>> {
    let whose = Some((bucket.entity.as_str(), bucket.resource.as_str()));
    let statuses = bucket.limits.iter().map(|status| PyStatus::of(py, status, now, whose));
    let statuses = PyTuple::new(py, statuses.collect::<PyResult<Vec<_>>>()?)?;
    record(py, "Bucket", (bucket.entity.as_str(), bucket.resource.as_str(), statuses))
}

fn capacity_record(py: Python<'_>, capacity: ResourceCapacity) -> PyResult<Py<PyAny>> {
    let ResourceCapacity { entities, total_capacity, total_available, total_used, .. } = capacity;
    let entity = |it: tollgate::catalog::EntityCapacity| {
        record(py, "EntityCapacity", (it.entity, it.capacity, it.available, it.used))
    };
    let entities = entities.into_iter().map(entity).collect::<PyResult<Vec<_>>>()?;
    let entities = PyTuple::new(py, entities)?;
    record(py, "ResourceCapacity", (total_capacity, total_available, total_used, entities))
}

fn counts_record(py: Python<'_>, counts: Counts) -> PyResult<Py<PyAny>> {
    let Counts { entities, entity_limits, resource_limits, system_limits, .. } = counts;
    let Counts { disabled, audit_events, usage_records, buckets, .. } = counts;
    let limits = (entities, entity_limits, resource_limits, system_limits);
    record(
        py,
        "Counts",
        (limits.0, limits.1, limits.2, limits.3, disabled, audit_events, usage_records, buckets),
    )
}

pairs! { PyCatalog, "Catalog":
    /// Adds credit to the bucket of an entity for a resource, up to its capacity. With an idempotency `key` it happens once: returns true if
    /// it was done now, false if the key was used before.
    ///
    /// ```python
    /// catalog.top_up("user-1", "gpt-4", {"tpm": 1_000}, key="invoice-17")
    /// ```
    fn top_up, top_up_async (entity, resource, credit=None, /, *, key=None, **named) (
        slf,
        entity: TextArgument,
        resource: TextArgument,
        credit: Option<&Bound<'_, PyAny>>,
        key: Option<TextArgument>,
        named: Option<&Bound<'_, PyDict>>
    ) {
        let credit = owned_demand(slf.py(), credit, named, &NoUnits)?;
        let catalog = slf.get().catalog.clone();
        ask_plain(async move {
            let key = key.as_deref();
            catalog.top_up(&entity.0, &resource.0, &credit, key).await
        })
    }

    /// Resets the bucket of an entity for a resource to its unused state. The `key` is as for `top_up`.
    ///
    /// ```python
    /// catalog.reset("user-1", "gpt-4")
    /// ```
    fn reset, reset_async (entity, resource, /, *, key=None) (
        slf,
        entity: TextArgument,
        resource: TextArgument,
        key: Option<TextArgument>
    ) {
        let catalog = slf.get().catalog.clone();
        ask_plain(async move {
            catalog.reset(&entity.0, &resource.0, key.as_deref()).await
        })
    }

    /// Returns the status of the buckets of an entity. Full ones may be missing.
    ///
    /// ```python
    /// catalog.buckets("user-1")[0].statuses
    /// ```
    fn buckets, buckets_async (entity, /) (slf, entity: TextArgument) {
        let catalog = slf.get().catalog.clone();
        let found = async move {
            let found = catalog.buckets(&entity.0).await?;
            Ok((found, catalog.backend().clock().now()))
        };
        ask(found, |py, (found, now)| {
            found.iter().map(|bucket| bucket_record(py, bucket, now)).collect::<PyResult<Vec<_>>>()
        })
    }

    /// Returns how much all entities have and use of one limit of a resource.
    ///
    /// ```python
    /// catalog.capacity("gpt-4", "tpm").total_used
    /// ```
    fn capacity, capacity_async (resource, limit, /) (slf, resource: TextArgument, limit: TextArgument) {
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.capacity(&resource.0, &limit.0).await }, capacity_record)
    }

    /// Returns how many entities, limits, events and buckets the namespace has, or one entity of it. It reads all keys.
    ///
    /// ```python
    /// catalog.counts().entities
    /// ```
    fn counts, counts_async (entity=None, /) (slf, entity: Option<TextArgument>) {
        let catalog = slf.get().catalog.clone();
        let counts = async move {
            match &entity {
                Some(entity) => catalog.counts_of_entity(&entity.0).await,
                None => catalog.counts().await,
            }
        };
        ask(counts, counts_record)
    }
}
