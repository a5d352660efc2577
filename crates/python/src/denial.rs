//! Denials: the status of every limit, and when a demand would fit.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use tollgate::Denial;
use tollgate::limiter::ChainStatus;

use crate::error::denied;
use crate::status::PyStatus;

/// A demand that was denied: false where a lease is true. Nothing was taken.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.per_hour("jobs", 1)])
/// limits.acquire(jobs=1).commit()
/// denial = limits.try_acquire(jobs=1)
/// assert not denial and denial.limited_by.name == "jobs" and denial.retry_after > 3_500
/// ```
#[pyclass(frozen, name = "Denial", module = "tollgate")]
pub(crate) struct PyDenial {
    source: DenialSource,
    /// Made when they are first asked for: most callers only look at the wait.
    statuses: PyOnceLock<Py<PyTuple>>,
}

/// Where a denial comes from.
enum DenialSource {
    Set(Box<Denial>),
    Limiter(Box<ChainStatus>),
    Pickled { text: String, retry_after: Option<f64>, ahead: u32 },
}

impl PyDenial {
    pub(crate) fn of_set(denial: Box<Denial>) -> PyDenial {
        PyDenial { source: DenialSource::Set(denial), statuses: PyOnceLock::new() }
    }

    #[allow(dead_code, reason = "for the limiter")]
    pub(crate) fn of_limiter(status: Box<ChainStatus>) -> PyDenial {
        PyDenial { source: DenialSource::Limiter(status), statuses: PyOnceLock::new() }
    }

    fn statuses_of<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let statuses = self.statuses.get_or_try_init(py, || {
            let statuses: Vec<PyStatus> = match &self.source {
                DenialSource::Set(denial) => {
                    let of = |status| PyStatus::of(py, &status, denial.now(), None);
                    denial.statuses().map(of).collect::<PyResult<_>>()?
                }
                DenialSource::Limiter(chain) => {
                    let of = |(part, status): (&tollgate::limiter::LinkStatus, _)| {
                        let whose = Some((part.entity.as_str(), part.resource.as_str()));
                        PyStatus::of(py, &status, part.denial.now(), whose)
                    };
                    chain.statuses().map(of).collect::<PyResult<_>>()?
                }
                DenialSource::Pickled { .. } => Vec::new(),
            };
            Ok::<_, PyErr>(PyTuple::new(py, statuses)?.unbind())
        })?;
        Ok(statuses.bind(py).clone())
    }

    fn text(&self) -> String {
        match &self.source {
            DenialSource::Set(denial) => denial.to_string(),
            DenialSource::Limiter(chain) => chain.to_string(),
            DenialSource::Pickled { text, .. } => text.clone(),
        }
    }
}

#[pymethods]
impl PyDenial {
    fn __bool__(&self) -> bool {
        false
    }

    /// How many seconds until the demand would fit, if no other caller takes or gives back; `None` if that is not known, because it
    /// waits for others.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        match &self.source {
            DenialSource::Set(denial) => denial.wait().map(|wait| wait.as_secs_f64()),
            DenialSource::Limiter(chain) => chain.retry_after().map(|wait| wait.as_secs_f64()),
            DenialSource::Pickled { retry_after, .. } => *retry_after,
        }
    }

    /// The same for the header `Retry-After`: whole seconds, rounded up. `None` if it is not known.
    #[getter]
    fn retry_after_header(&self) -> Option<String> {
        self.retry_after().map(|seconds| format!("{}", seconds.ceil().max(1.0)))
    }

    /// How many waiters are known to be ahead.
    #[getter]
    fn ahead(&self) -> u32 {
        match &self.source {
            DenialSource::Set(denial) => denial.ahead(),
            DenialSource::Limiter(chain) => {
                chain.parts.iter().map(|part| part.denial.ahead()).max().unwrap_or(0)
            }
            DenialSource::Pickled { ahead, .. } => *ahead,
        }
    }

    /// How every limit stands.
    #[getter]
    fn statuses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.statuses_of(py)
    }

    /// The limits that deny the demand.
    #[getter]
    fn violations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let statuses = self.statuses_of(py)?;
        let exceeded: Vec<_> = statuses
            .iter()
            .filter(|status| status.cast::<PyStatus>().is_ok_and(|s| s.get().is_exceeded()))
            .collect();
        PyTuple::new(py, exceeded)
    }

    /// The limit that takes longest; `None` if no limit denies, but a cooldown or a waiter ahead.
    #[getter]
    fn limited_by<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut slowest: Option<(f64, Bound<'py, PyAny>)> = None;
        for status in self.violations(py)? {
            let wait = status.cast::<PyStatus>()?.get().wait();
            if slowest.as_ref().is_none_or(|(longest, _)| wait > *longest) {
                slowest = Some((wait, status));
            }
        }
        Ok(slowest.map(|(_, status)| status))
    }

    /// Returns the denial as a dict, for an answer in JSON.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("error", "rate_limited")?;
        dict.set_item("message", self.text())?;
        dict.set_item("retry_after", self.retry_after())?;
        dict.set_item("ahead", self.ahead())?;
        let limits = self.statuses_of(py)?;
        let limits: Vec<Bound<'py, PyDict>> = limits
            .iter()
            .map(|status| status.cast::<PyStatus>()?.get().as_dict(py))
            .collect::<PyResult<_>>()?;
        dict.set_item("limits", limits)?;
        Ok(dict)
    }

    /// Raises `RateLimited` with this denial.
    fn raise_(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        Err(denied(py, slf.get().copy(py)?, None))
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("<Denial {}>", self.text())
    }

    /// Restores a pickled denial.
    #[staticmethod]
    fn _from_parts(
        py: Python<'_>,
        text: String,
        retry_after: Option<f64>,
        ahead: u32,
        statuses: Py<PyTuple>,
    ) -> PyDenial {
        let cell = PyOnceLock::new();
        // It is empty, so that this is stored.
        let _ = cell.set(py, statuses);
        PyDenial { source: DenialSource::Pickled { text, retry_after, ahead }, statuses: cell }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let parts = (self.text(), self.retry_after(), self.ahead(), self.statuses_of(py)?);
        Ok((py.get_type::<PyDenial>().getattr("_from_parts")?, parts.into_pyobject(py)?))
    }
}

impl PyDenial {
    fn copy(&self, py: Python<'_>) -> PyResult<PyDenial> {
        Ok(match &self.source {
            DenialSource::Set(denial) => PyDenial::of_set(denial.clone()),
            DenialSource::Limiter(status) => PyDenial::of_limiter(status.clone()),
            DenialSource::Pickled { text, retry_after, ahead } => {
                PyDenial::_from_parts(py, text.clone(), *retry_after, *ahead, self.statuses_of(py)?.unbind())
            }
        })
    }
}
