//! Exceptions: the classes are defined in Python (`tollgate/_errors.py`), because some have two parents and all of them pickle.

use pyo3::prelude::*;
use tollgate::store::StoreError;
use tollgate::{AcquireError, DemandError, LeaseError, LimitError, LimitsError, ReplaceError};

use crate::denial::PyDenial;
use crate::hooks::exception;

/// Defines a function for each exception that makes one from a text.
macro_rules! exceptions {
    ($($(#[$doc:meta])* $function:ident = $class:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $function(py: Python<'_>, text: impl Into<String>) -> PyErr {
            made(exception(py, $class).and_then(|class| class.call1((text.into(),))))
        }
    )*};
}

exceptions! {
    /// Bad input to a constructor: a limit, a name, a setting.
    invalid = "InvalidValue";
    /// A demand or a report that is not valid.
    invalid_demand = "InvalidDemand";
    /// A demand that can never fit.
    impossible = "Impossible";
    /// The store did not answer.
    unavailable = "Unavailable";
    /// The store answered that it will not: no permission, a damaged file.
    refused = "StoreRefused";
    /// Too many wait already.
    queue_full = "QueueFull";
    /// An entity, a namespace or limits that do not exist.
    not_found = "NotFound";
    /// There are no limits for an entity and a resource.
    no_limits = "NoLimits";
    /// An entity or a namespace that exists already.
    already_exists = "AlreadyExists";
    /// What others did, or what is there, forbids the change.
    conflict = "Conflict";
    /// An entity or a resource is disabled.
    disabled = "Disabled";
    /// The token of a lease that is not valid.
    token_error = "TokenError";
    /// The lease has ended, or belongs to another process.
    lease_ended = "LeaseEnded";
    /// A wait in a thread that runs an event loop.
    would_block_loop = "WouldBlockLoop";
}

/// Returns the exception that a call has made, or the one that it raised.
fn made(exception: PyResult<Bound<'_, PyAny>>) -> PyErr {
    exception.map_or_else(|error| error, PyErr::from_value)
}

/// Returns the exception of a denial, after a wait of `waited` seconds if there was one.
pub(crate) fn denied(py: Python<'_>, denial: PyDenial, waited: Option<f64>) -> PyErr {
    made(match waited {
        None => exception(py, "RateLimited").and_then(|class| class.call1((denial,))),
        Some(waited) => exception(py, "TimedOut").and_then(|class| class.call1((denial, waited))),
    })
}

/// Converts an error of the library to the exception of the package.
pub(crate) trait IntoPyErr {
    /// Returns the exception.
    fn into_py_err(self, py: Python<'_>) -> PyErr;
}

impl IntoPyErr for AcquireError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            AcquireError::Demand(error) => error.into_py_err(py),
            AcquireError::Denied(denial) => denied(py, PyDenial::of_set(denial), None),
            AcquireError::TimedOut { denial, waited } => {
                denied(py, PyDenial::of_set(denial), Some(waited.as_secs_f64()))
            }
            AcquireError::QueueFull(error) => queue_full(py, error.to_string()),
            AcquireError::Limits(error) => error.into_py_err(py),
            AcquireError::Store(error) => error.into_py_err(py),
            other => unavailable(py, other.to_string()),
        }
    }
}

impl IntoPyErr for DemandError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            DemandError::Impossible { .. } => impossible(py, self.to_string()),
            other => invalid_demand(py, other.to_string()),
        }
    }
}

impl IntoPyErr for StoreError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            StoreError::Unavailable(..) => unavailable(py, self.to_string()),
            other => refused(py, other.to_string()),
        }
    }
}

impl IntoPyErr for LeaseError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            LeaseError::Store(error) => error.into_py_err(py),
            other => invalid_demand(py, other.to_string()),
        }
    }
}

impl IntoPyErr for ReplaceError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            ReplaceError::Limits(error) => error.into_py_err(py),
            ReplaceError::Store(error) => error.into_py_err(py),
            other => refused(py, other.to_string()),
        }
    }
}

impl IntoPyErr for LimitsError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        invalid(py, self.to_string())
    }
}

impl IntoPyErr for LimitError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        invalid(py, self.to_string())
    }
}

/// Converts the error of a result to the exception of the package.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or the exception.
    ///
    /// # Errors
    ///
    /// The exception of the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: IntoPyErr> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.into_py_err(py))
    }
}
