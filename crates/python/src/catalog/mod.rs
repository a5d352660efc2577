//! The catalog of a limiter: entities, stored limits, switches, audit events, usage and namespaces.

mod audit;
mod buckets;
mod entities;
mod limits;
mod namespaces;
mod switches;
mod usage;

pub(crate) use namespaces::PyNamespaces;

use std::future::Future;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use tollgate::Catalog;
use tollgate::catalog::{CatalogError, Page};

use crate::error::OrRaise;
use crate::hooks::record_class;
use crate::input::TextArgument;
use crate::limiter::PyLimiter;
use crate::wait::{FirstPoll, PendingOp, operation};

/// Entities, stored limits, audit events and usage of one namespace: `limiter.catalog`. Every change has an audit event that names the
/// principal that made it.
///
/// ```python
/// import tollgate as tg
///
/// catalog = tg.Limiter("memory").catalog
/// catalog.create_entity("team")
/// catalog.create_entity("user-1", parent="team", cascades=True)
/// catalog.set_limits([tg.per_minute("rpm", 500)], entity="team")
/// ```
#[pyclass(frozen, name = "Catalog", module = "tollgate")]
pub(crate) struct PyCatalog {
    limiter: Py<PyLimiter>,
    catalog: Catalog,
}

impl PyCatalog {
    pub(crate) fn of(limiter: Py<PyLimiter>, catalog: Catalog) -> PyCatalog {
        PyCatalog { limiter, catalog }
    }

    fn first_poll(&self) -> FirstPoll {
        self.limiter.get().first_poll()
    }
}

#[pymethods]
impl PyCatalog {
    /// Returns the same catalog for another principal, which audit events will name.
    fn acting_as(&self, py: Python<'_>, principal: TextArgument) -> PyResult<PyCatalog> {
        let catalog = self.catalog.acting_as(&principal.0).or_raise(py)?;
        Ok(PyCatalog { limiter: self.limiter.clone_ref(py), catalog })
    }

    /// The principal that audit events name.
    #[getter]
    fn principal(&self) -> &str {
        self.catalog.principal()
    }

    /// The name of the namespace.
    #[getter]
    fn namespace(&self) -> &str {
        self.catalog.namespace_name()
    }

    /// The id of the namespace, which stays the same when the name is given to another one.
    #[getter]
    fn namespace_id(&self) -> &str {
        self.catalog.namespace_id()
    }

    /// The namespaces of the store.
    #[getter]
    fn namespaces(&self, py: Python<'_>) -> PyNamespaces {
        PyNamespaces::of(self.limiter.clone_ref(py))
    }

    /// Forgets what is cached of the store, so that the changes of other processes are seen at once.
    fn invalidate(&self) {
        self.catalog.invalidate();
    }

    /// Returns the hits and misses of the cache.
    fn cache_stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let stats = self.catalog.cache_stats();
        record(py, "CacheStats", (stats.hits, stats.misses, stats.negative_hits, stats.entries))
    }

    fn __repr__(&self) -> String {
        format!("<Catalog {:?} of {:?}>", self.namespace(), self.limiter.get().store_shown())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.limiter)
    }
}

/// Makes a record: an object of a class of `tollgate._records`.
pub(crate) fn record<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Py<PyAny>> {
    let fields = fields.into_pyobject(py)?;
    Ok(record_class(py, class)?.call1(fields)?.unbind())
}

/// Returns the operation that asks the catalog, and makes the caller's value of the answer.
fn ask<T, V>(
    answer: impl Future<Output = Result<T, CatalogError>> + Send + 'static,
    make: impl FnOnce(Python<'_>, T) -> PyResult<V> + Send + 'static,
) -> PendingOp
where
    T: Send + 'static,
    V: for<'py> IntoPyObject<'py>,
{
    operation(answer, |py, answer| make(py, answer.or_raise(py)?))
}

/// Returns the operation whose answer is the caller's value already.
fn ask_plain<T>(answer: impl Future<Output = Result<T, CatalogError>> + Send + 'static) -> PendingOp
where
    T: Send + 'static + for<'py> IntoPyObject<'py>,
{
    ask(answer, |_, value| Ok(value))
}

/// Makes the record of a page, whose items are made by `item`.
fn page_of<T>(
    py: Python<'_>,
    page: Page<T>,
    item: impl Fn(Python<'_>, T) -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let items = page.items.into_iter().map(|it| item(py, it)).collect::<PyResult<Vec<_>>>()?;
    record(py, "Page", (PyTuple::new(py, items)?, page.next.map(|cursor| cursor.0)))
}

/// Makes the record of a page of texts.
fn page_of_texts(py: Python<'_>, page: Page<String>) -> PyResult<Py<PyAny>> {
    page_of(py, page, |py, text| Ok(text.into_pyobject(py)?.into_any().unbind()))
}

/// Makes a dict whose values are made by `value`.
fn dict_of<'py, K, T>(
    py: Python<'py>,
    entries: impl IntoIterator<Item = (K, T)>,
    value: impl Fn(Python<'py>, T) -> PyResult<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>>
where
    K: IntoPyObject<'py>,
{
    let dict = PyDict::new(py);
    for (key, it) in entries {
        dict.set_item(key, value(py, it)?)?;
    }
    Ok(dict)
}
