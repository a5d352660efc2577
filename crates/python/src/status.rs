//! How limits stand.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use tollgate::set::SetStatus;
use tollgate::{Status, Tick};

use crate::limit::PyLimit;

/// One limit at one instant, for a demand if there was one. Times are in seconds from that instant; `None` is unknown, because it
/// depends on others that give back.
///
/// ```python
/// import tollgate as tg
///
/// status = tg.LimitSet([tg.per_day("tokens", 1_000)]).peek()["tokens"]
/// assert (status.name, status.available, status.exceeded) == ("tokens", 1_000, False)
/// ```
#[pyclass(frozen, name = "Status", module = "tollgate", get_all)]
pub(crate) struct PyStatus {
    limit: Py<PyLimit>,
    /// How much is available; negative in debt.
    available: i64,
    /// How much the demand asks.
    requested: u64,
    /// Whether the limit denies the demand.
    exceeded: bool,
    /// When the limit alone would admit the demand.
    retry_after: Option<f64>,
    /// When it is full again.
    full_after: Option<f64>,
    /// Whose limit it is; `None` in a set.
    entity: Option<String>,
    /// For what; `None` in a set.
    resource: Option<String>,
}

/// The fields of a status in the order of its constructor.
type StatusFields = (Py<PyLimit>, i64, u64, bool, Option<f64>, Option<f64>, Option<String>, Option<String>);

impl PyStatus {
    pub(crate) fn of(
        py: Python<'_>,
        status: &Status,
        now: Tick,
        whose: Option<(&str, &str)>,
    ) -> PyResult<PyStatus> {
        let seconds = |ready: tollgate::Ready| ready.wait(now).map(|wait| wait.as_secs_f64());
        Ok(PyStatus {
            limit: Py::new(py, PyLimit(status.limit().clone()))?,
            available: status.available(),
            requested: status.requested(),
            exceeded: status.is_exceeded(),
            retry_after: seconds(status.ready()),
            full_after: seconds(status.full()),
            entity: whose.map(|(entity, _)| entity.into()),
            resource: whose.map(|(_, resource)| resource.into()),
        })
    }
}

impl PyStatus {
    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded
    }

    /// Returns the wait for a comparison: what is not known is longest.
    pub(crate) fn wait(&self) -> f64 {
        self.retry_after.unwrap_or(f64::INFINITY)
    }

    pub(crate) fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("name", self.limit.get().0.name().as_str())?;
        dict.set_item("limit", self.limit.get().0.to_string())?;
        dict.set_item("available", self.available)?;
        dict.set_item("requested", self.requested)?;
        dict.set_item("exceeded", self.exceeded)?;
        dict.set_item("retry_after", self.retry_after)?;
        dict.set_item("full_after", self.full_after)?;
        if let (Some(entity), Some(resource)) = (&self.entity, &self.resource) {
            dict.set_item("entity", entity)?;
            dict.set_item("resource", resource)?;
        }
        Ok(dict)
    }
}

#[pymethods]
impl PyStatus {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "the fields, for unpickling")]
    fn new(
        limit: Py<PyLimit>,
        available: i64,
        requested: u64,
        exceeded: bool,
        retry_after: Option<f64>,
        full_after: Option<f64>,
        entity: Option<String>,
        resource: Option<String>,
    ) -> PyStatus {
        PyStatus { limit, available, requested, exceeded, retry_after, full_after, entity, resource }
    }

    /// The name of the limit.
    #[getter]
    fn name(&self) -> &str {
        self.limit.get().0.name()
    }

    fn __repr__(&self) -> String {
        let (limit, available) = (self.limit.get(), self.available);
        format!("<Status {}: {available} available, {} requested>", limit.0.name(), self.requested)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, StatusFields) {
        let fields = (
            self.limit.clone_ref(py),
            self.available,
            self.requested,
            self.exceeded,
            self.retry_after,
            self.full_after,
            self.entity.clone(),
            self.resource.clone(),
        );
        (py.get_type::<PyStatus>(), fields)
    }
}

/// A set at one instant: `status["tpm"].available`.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.resource("slots", 2)])
/// with limits.acquire():
///     status = limits.peek()
/// assert (status["slots"].available, status.waiting, status.cooling_for) == (1, 0, None)
/// ```
#[pyclass(frozen, name = "SetStatus", module = "tollgate", get_all)]
pub(crate) struct PySetStatus {
    /// Each limit, in the order of the set.
    limits: Py<PyTuple>,
    /// How many callers wait.
    waiting: usize,
    /// How many seconds a cooldown still lasts; `None` without one.
    cooling_for: Option<f64>,
}

impl PySetStatus {
    pub(crate) fn of(py: Python<'_>, status: &SetStatus, now: Tick) -> PyResult<PySetStatus> {
        let limits = status.limits.iter().map(|status| PyStatus::of(py, status, now, None));
        let limits = limits.collect::<PyResult<Vec<_>>>()?;
        let cooling_for = status.cooling_until.map(|until| until.since(now).to_duration().as_secs_f64());
        Ok(PySetStatus { limits: PyTuple::new(py, limits)?.unbind(), waiting: status.waiting, cooling_for })
    }
}

#[pymethods]
impl PySetStatus {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        for status in self.limits.bind(py) {
            if status.cast::<PyStatus>()?.get().name() == name {
                return Ok(status);
            }
        }
        Err(pyo3::exceptions::PyKeyError::new_err(name.to_owned()))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.limits.bind(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<SetStatus {} waiting={}>", self.limits.bind(py).repr()?, self.waiting))
    }
}
