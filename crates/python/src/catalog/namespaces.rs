//! Namespaces: users of one store that have nothing in common.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tollgate::catalog::{Namespace, Purged};

use super::{ask, record};
use crate::input::TextArgument;
use crate::limiter::PyLimiter;
use crate::pairs::pairs;
use crate::wait::FirstPoll;

/// The namespaces of a store: `limiter.catalog.namespaces`. A name can be given to another namespace once it is free; the id never.
///
/// ```python
/// import tollgate as tg
///
/// namespaces = tg.Limiter("memory").catalog.namespaces
/// namespaces.create("staging")
/// ```
#[pyclass(frozen, name = "Namespaces", module = "tollgate")]
pub(crate) struct PyNamespaces(Py<PyLimiter>);

impl PyNamespaces {
    pub(super) fn of(limiter: Py<PyLimiter>) -> PyNamespaces {
        PyNamespaces(limiter)
    }

    fn first_poll(&self) -> FirstPoll {
        self.0.get().first_poll()
    }
}

#[pymethods]
impl PyNamespaces {
    fn __repr__(&self) -> String {
        format!("<Namespaces of {:?}>", self.0.get().store_shown())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

fn namespace_record(py: Python<'_>, namespace: Namespace) -> PyResult<Py<PyAny>> {
    let Namespace { id, name, status, created_at, deleted_at, .. } = namespace;
    record(py, "Namespace", (id, name, status.name(), created_at, deleted_at))
}

fn records_of(py: Python<'_>, found: Vec<Namespace>) -> PyResult<Vec<Py<PyAny>>> {
    found.into_iter().map(|namespace| namespace_record(py, namespace)).collect()
}

fn purged_record(py: Python<'_>, purged: Purged) -> PyResult<Py<PyAny>> {
    let Purged { namespace, buckets, records, .. } = purged;
    record(py, "Purged", (namespace_record(py, namespace)?, buckets, records))
}

pairs! { PyNamespaces, "Namespaces":
    /// Returns the namespaces that are in use.
    ///
    /// ```python
    /// [namespace.name for namespace in namespaces.list()]
    /// ```
    fn list, list_async () (slf) {
        let registry = slf.get().0.get().registry().clone();
        ask(async move { registry.list().await }, records_of)
    }

    /// Returns the namespace that has a name; `None` if none has it.
    ///
    /// ```python
    /// namespaces.get("staging").id
    /// ```
    fn get, get_async (name, /) (slf, name: TextArgument) {
        let registry = slf.get().0.get().registry().clone();
        ask(async move { registry.get(&name.0).await }, |py, found| {
            found.map(|namespace| namespace_record(py, namespace)).transpose()
        })
    }

    /// Creates a namespace, or returns the one that has the name.
    ///
    /// ```python
    /// namespaces.create("staging")
    /// ```
    fn create, create_async (name, /) (slf, name: TextArgument) {
        let registry = slf.get().0.get().registry().clone();
        ask(async move { registry.register(&name.0).await }, namespace_record)
    }

    /// Deletes a namespace by its name. Its records stay, so that it can be recovered by its id until it is purged.
    ///
    /// ```python
    /// gone = namespaces.delete("staging")
    /// ```
    fn delete, delete_async (name, /) (slf, name: TextArgument) {
        let registry = slf.get().0.get().registry().clone();
        ask(async move { registry.delete(&name.0).await }, namespace_record)
    }

    /// Recovers a deleted namespace by its id.
    ///
    /// ```python
    /// namespaces.recover(gone.id)
    /// ```
    fn recover, recover_async (id, /) (slf, id: TextArgument) {
        let registry = slf.get().0.get().registry().clone();
        ask(async move { registry.recover(&id.0).await }, namespace_record)
    }

    /// Returns the namespaces that were deleted and not purged.
    ///
    /// ```python
    /// [namespace.id for namespace in namespaces.orphans()]
    /// ```
    fn orphans, orphans_async () (slf) {
        let registry = slf.get().0.get().registry().clone();
        ask(async move { registry.orphans().await }, records_of)
    }

    /// Deletes all records of a deleted namespace, by its id. It can be repeated if it was interrupted.
    ///
    /// ```python
    /// namespaces.purge(gone.id).records
    /// ```
    fn purge, purge_async (id, /) (slf, id: TextArgument) {
        let registry = slf.get().0.get().registry().clone();
        ask(async move { registry.purge(&id.0, |_| {}).await }, purged_record)
    }
}
