//! Audit events.

use pyo3::prelude::*;
use tollgate::catalog::{AuditEvent, Subject};
use tollgate::store::records::Value;

use super::{PyCatalog, ask, dict_of, page_of, record};
use crate::error::invalid;
use crate::input::{TextArgument, page};
use crate::pairs::pairs;

fn value_object(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any().unbind(),
        Value::Int(value) => value.into_pyobject(py)?.into_any().unbind(),
        Value::Text(value) => value.into_pyobject(py)?.into_any().unbind(),
        Value::Set(value) => value.into_iter().collect::<Vec<_>>().into_pyobject(py)?.into_any().unbind(),
        Value::Map(fields) => dict_of(py, fields, value_object)?.into_any().unbind(),
        _ => py.None(),
    })
}

fn event_record(py: Python<'_>, event: AuditEvent) -> PyResult<Py<PyAny>> {
    let AuditEvent { id, subject, timestamp, action, principal, resource, details, .. } = event;
    let details = dict_of(py, details, value_object)?;
    record(py, "AuditEvent", (id, subject, timestamp, action.name(), principal, resource, details))
}

pairs! { PyCatalog, "Catalog":
    /// Returns a page of the changes that were made: to an entity, to the limits or switches of a resource, to those of the system
    /// (`system=True`), or of the whole namespace.
    ///
    /// ```python
    /// for event in catalog.audit(entity="user-1", limit=20, newest_first=True).items:
    ///     print(event.timestamp, event.principal, event.action)
    /// ```
    fn audit, audit_async (*, entity=None, resource=None, system=false, limit=None, after=None, newest_first=false) (
        slf,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>,
        system: bool,
        limit: Option<&Bound<'_, PyAny>>,
        after: Option<TextArgument>,
        newest_first: bool
    ) {
        if usize::from(entity.is_some()) + usize::from(resource.is_some()) + usize::from(system) > 1 {
            return Err(invalid(slf.py(), "name an entity, a resource or the system, or none of them"));
        }
        let (catalog, page) = (slf.get().catalog.clone(), page(limit, after, newest_first)?);
        let events = async move {
            match (&entity, &resource) {
                (Some(entity), _) => catalog.audit(Subject::Entity(&entity.0), page).await,
                (None, Some(resource)) => catalog.audit(Subject::Resource(&resource.0), page).await,
                (None, None) if system => catalog.audit(Subject::System, page).await,
                (None, None) => catalog.audit_of_all(page).await,
            }
        };
        ask(events, |py, events| page_of(py, events, event_record))
    }
}
