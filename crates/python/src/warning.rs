//! Warnings of objects that are collected.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Warns from a destructor. An exception that is being raised meanwhile stays as it is, and a warning that is turned into an error is
/// reported, because a destructor cannot raise it.
pub(crate) fn warn_from_drop(class: impl FnOnce(Python<'_>) -> Bound<'_, PyType>, text: &CStr) {
    // Without an interpreter, at its end, there is nothing to warn of.
    let _ = Python::try_attach(|py| {
        let raised = PyErr::take(py);
        if let Err(error) = PyErr::warn(py, class(py).as_any(), text, 1) {
            error.write_unraisable(py, None);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}
