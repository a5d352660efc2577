//! What the extension module calls in the package.
//!
//! The package sets all of it when it is imported. Nothing is imported later: a signal handler may run in the middle of an import, and a
//! forked child would wait for ever for one that a thread of its parent was making.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

struct Hooks {
    awaiting: Py<PyAny>,
    errors: Py<PyAny>,
    stores: Py<PyAny>,
    observing: Py<PyAny>,
    records: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Sets the modules that the extension calls: the one that waits in event loops, that of the exceptions, that of stores, that of observers
/// and that of records.
#[pyfunction]
pub(crate) fn _set_hooks(
    py: Python<'_>,
    awaiting: Py<PyAny>,
    errors: Py<PyAny>,
    stores: Py<PyAny>,
    observing: Py<PyAny>,
    records: Py<PyAny>,
) {
    // A second import in the same process brings the same modules.
    let _ = HOOKS.set(py, Hooks { awaiting, errors, stores, observing, records });
    crate::logging::begin();
}

fn hooks(py: Python<'_>) -> PyResult<&'static Hooks> {
    let missing = || pyo3::exceptions::PyImportError::new_err("import tollgate, not tollgate._core");
    HOOKS.get(py).ok_or_else(missing)
}

/// Returns a function of `tollgate._awaiting`.
pub(crate) fn awaiting<'py>(
    py: Python<'py>,
    name: &Bound<'py, pyo3::types::PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    hooks(py)?.awaiting.bind(py).getattr(name)
}

/// Returns a class of `tollgate._errors`.
pub(crate) fn exception<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    hooks(py)?.errors.bind(py).getattr(name)
}

/// Returns the module `tollgate._stores`.
pub(crate) fn stores(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    Ok(hooks(py)?.stores.bind(py))
}

/// Returns the module `tollgate._observing`.
pub(crate) fn observing(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    Ok(hooks(py)?.observing.bind(py))
}

/// Returns a class of `tollgate._records`.
pub(crate) fn record_class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    hooks(py)?.records.bind(py).getattr(name)
}
