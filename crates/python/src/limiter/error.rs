//! Errors of limiters, catalogs and tokens as exceptions.

use pyo3::prelude::*;
use tollgate::catalog::CatalogError;
use tollgate::limiter::TicketError;
use tollgate::{DemandError, LimiterError};

use crate::denial::PyDenial;
use crate::error::{
    IntoPyErr, already_exists, conflict, denied, disabled, impossible, invalid, invalid_demand, no_limits,
    not_found, queue_full, refused, token_error, unavailable,
};

impl IntoPyErr for LimiterError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            LimiterError::Denied(status) => denied(py, PyDenial::of_limiter(status), None),
            LimiterError::TimedOut { status, waited } => {
                denied(py, PyDenial::of_limiter(status), Some(waited.as_secs_f64()))
            }
            LimiterError::Demand { why: DemandError::Impossible { .. }, .. } => {
                impossible(py, self.to_string())
            }
            LimiterError::QueueFull(error) => queue_full(py, error.to_string()),
            LimiterError::Catalog(error) => error.into_py_err(py),
            LimiterError::Store(error) => error.into_py_err(py),
            // The demand, or a resource that is named twice.
            other => invalid_demand(py, other.to_string()),
        }
    }
}

impl IntoPyErr for CatalogError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        let text = || self.to_string();
        match self {
            CatalogError::NamespaceNotFound(_)
            | CatalogError::NamespaceGone { .. }
            | CatalogError::EntityNotFound(_)
            | CatalogError::ParentNotFound { .. } => not_found(py, text()),
            CatalogError::NoLimits { .. } => no_limits(py, text()),
            CatalogError::EntityExists(_) | CatalogError::NamespaceTaken { .. } => already_exists(py, text()),
            CatalogError::NamespaceStatus { .. }
            | CatalogError::HasChildren { .. }
            | CatalogError::Contended(_)
            | CatalogError::SetChanged(_) => conflict(py, text()),
            CatalogError::Disabled { .. } => disabled(py, text()),
            CatalogError::Credit(error) => error.into_py_err(py),
            CatalogError::CreditOfResource(_) => invalid_demand(py, text()),
            CatalogError::NotAToken(_) | CatalogError::TokenRefused(_) => token_error(py, text()),
            CatalogError::Store(error) => error.into_py_err(py),
            CatalogError::BadRecord { .. }
            | CatalogError::TooNew { .. }
            | CatalogError::TooOld { .. }
            | CatalogError::WouldLose(_)
            | CatalogError::ClientTooOld { .. }
            | CatalogError::NoSecret { .. }
            | CatalogError::NoRandomness(_) => refused(py, text()),
            // Names, limits and other values.
            _ => invalid(py, text()),
        }
    }
}

impl IntoPyErr for TicketError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            TicketError::Catalog(error) => error.into_py_err(py),
            TicketError::Held => {
                let text = "the lease held resources for this process, and has ended; acquire it with detached=seconds to hand it on";
                token_error(py, text)
            }
            // A ticket is called a token in Python, as in `into_token`.
            other => token_error(py, other.to_string().replace("ticket", "token")),
        }
    }
}

impl IntoPyErr for tollgate::Error {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            tollgate::Error::Acquire(error) => error.into_py_err(py),
            tollgate::Error::Limiter(error) => error.into_py_err(py),
            tollgate::Error::Lease(error) => error.into_py_err(py),
            tollgate::Error::Ticket(error) => error.into_py_err(py),
            tollgate::Error::Limits(error) => error.into_py_err(py),
            tollgate::Error::Replace(error) => error.into_py_err(py),
            tollgate::Error::Catalog(error) => error.into_py_err(py),
            tollgate::Error::Store(error) => error.into_py_err(py),
            other => unavailable(py, other.to_string()),
        }
    }
}
