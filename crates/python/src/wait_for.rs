//! The time-out and the priority of a call.

use std::time::Duration;

use pyo3::prelude::*;
use tollgate::Priority;

use crate::amount::seconds;
use crate::error::invalid;

/// For how long a caller waits, and before which others.
#[derive(Clone, Copy)]
pub(crate) struct WaitFor {
    pub(crate) timeout: Option<Duration>,
    pub(crate) priority: Priority,
}

/// What the priorities are called in Python.
const PRIORITIES: [(Priority, &str); 3] =
    [(Priority::Interactive, "interactive"), (Priority::Normal, "normal"), (Priority::Batch, "batch")];

impl WaitFor {
    pub(crate) fn of(
        py: Python<'_>,
        timeout: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
    ) -> PyResult<WaitFor> {
        let timeout = timeout.map_or(Ok(None), |timeout| seconds("timeout", timeout))?;
        Ok(WaitFor { timeout, priority: priority_of(py, priority)? })
    }
}

pub(crate) fn priority_of(py: Python<'_>, name: Option<&str>) -> PyResult<Priority> {
    let Some(name) = name else { return Ok(Priority::default()) };
    let known = PRIORITIES.iter().find(|(_, known)| *known == name);
    known.map(|(priority, _)| *priority).ok_or_else(|| {
        let names = PRIORITIES.map(|(_, name)| name).join(", ");
        invalid(py, format!("priority is {name:?}, but must be one of {names}"))
    })
}
