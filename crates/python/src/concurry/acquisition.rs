//! Acquisitions: of all limits of a set, and of each of them.

use std::sync::Arc;

use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use tollgate_store::Mutex;

use super::held::{HeldParts, ReportSource, released};
use super::limit_set::PySharedLimits;
use super::requested::dict_of;
use crate::error::OrRaise;
use crate::wait::pending::{Begun, Pending};
use crate::wait::{FirstPoll, operation};

/// What a call has taken from a set, all limits together, until it is released.
///
/// As a context manager it is released at the end of the block. What was not used is given back then.
#[pyclass(frozen, name = "LimitSetAcquisition", module = "tollgate.compat.concurry", weakref)]
pub(crate) struct PySetAcquisition {
    limit_set: Py<PySharedLimits>,
    held: Arc<HeldParts>,
    /// Whether all limits were acquired.
    #[pyo3(get)]
    successful: bool,
    config: PyOnceLock<Py<PyDict>>,
    /// Made when they are first asked for.
    acquisitions: PyOnceLock<Py<PyDict>>,
    /// The keys that a warning was made of.
    warned: Mutex<Vec<Py<PyAny>>>,
}

impl PySetAcquisition {
    #[inline]
    pub(super) fn new(limit_set: Py<PySharedLimits>, held: HeldParts, successful: bool) -> PySetAcquisition {
        PySetAcquisition {
            limit_set,
            held: Arc::new(held),
            successful,
            config: PyOnceLock::new(),
            acquisitions: PyOnceLock::new(),
            warned: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn is_successful(&self) -> bool {
        self.successful
    }

    /// Gives back all that was taken, without waiting for its store.
    pub(crate) fn cancel(&self) {
        self.held.cancel();
    }

    /// Returns the place of the limit with this key.
    #[inline]
    fn place(&self, key: &Bound<'_, PyAny>) -> Option<usize> {
        let limit = super::requested::index_of(self.limit_set.get().limits(), key)?;
        self.held.parts.iter().position(|part| part.limit == limit)
    }

    #[cold]
    fn warn_of_unknown(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let known = self.warned.lock().iter().any(|known| known.bind(py).eq(key).unwrap_or(false));
        if known {
            return Ok(());
        }
        self.warned.lock().push(key.clone().unbind());
        let keys = self.acquisitions_of(py)?.bind(py).keys();
        self.limit_set.bind(py).call_method1(intern!(py, "_warn_of_unacquired_key"), (key, keys))?;
        Ok(())
    }

    fn acquisitions_of(&self, py: Python<'_>) -> PyResult<&Py<PyDict>> {
        self.acquisitions.get_or_try_init(py, || {
            let acquisitions = PyDict::new(py);
            for (place, part) in self.held.parts.iter().enumerate() {
                let limit = &self.limit_set.get().limits()[part.limit];
                let acquisition = PyAcquisition {
                    limit: limit.limit.clone_ref(py),
                    requested: part.requested.clone_ref(py),
                    successful: self.successful,
                    of: AcquisitionOf::Set {
                        held: self.held.clone(),
                        limit_set: self.limit_set.clone_ref(py),
                        place,
                    },
                };
                acquisitions.set_item(&limit.key, acquisition)?;
            }
            Ok(acquisitions.unbind())
        })
    }

    /// Frees everything, and then returns the error of what had to be reported and was not.
    #[inline]
    fn end(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        let set = self.limit_set.get();
        let missing = self.held.end(py, set.limits(), set.first_poll())?;
        self.missing_error(py, missing)
    }

    #[inline]
    fn missing_error(&self, py: Python<'_>, missing: u32) -> PyResult<Option<PyErr>> {
        if missing == 0 {
            return Ok(None);
        }
        let is_missing = |place: &usize| missing >> place & 1 == 1;
        let places = (0..self.held.parts.len()).filter(is_missing);
        let limits = self.limit_set.get().limits();
        let keys = PyList::new(py, places.map(|place| limits[self.held.parts[place].limit].key.bind(py)))?;
        keys.sort()?;
        let keys = keys.repr()?;
        let text =
            format!("Not all limits in the LimitSet were updated. Missing: {}", keys.to_string_lossy());
        Ok(Some(PyRuntimeError::new_err(text)))
    }

    /// Ends it at the end of a block in an event loop.
    fn end_later(&self, py: Python<'_>, is_raised: bool) -> PyResult<Begun> {
        let (set, none) = (self.limit_set.get(), py.None());
        let first = set.first_poll();
        if first == FirstPoll::Attached {
            self.leave(py, is_raised)?;
            return Ok(Begun::Ended(none));
        }
        let (reply, missing) = self.held.begin_end(py, set.limits(), first);
        let error = if is_raised { None } else { self.missing_error(py, missing)? };
        let ended = async move {
            match reply {
                Some(reply) => reply.await,
                None => Ok(()),
            }
        };
        let ended = operation(ended, move |py, ended| {
            let ended = ended.or_raise(py);
            match (is_raised, error) {
                (true, _) => Ok(none),
                (false, Some(error)) => Err(error),
                (false, None) => ended.map(|()| none),
            }
        });
        Ok(Begun::UnderWay(ended, first))
    }

    /// Ends it at the end of a block.
    #[inline]
    fn leave(&self, py: Python<'_>, is_raised: bool) -> PyResult<()> {
        match (self.end(py), is_raised) {
            (Ok(None), _) | (Ok(Some(_)), true) => Ok(()),
            (Ok(Some(missing)), false) => Err(missing),
            // The caller's exception counts, not that the store did not answer; but an interrupt does.
            (Err(error), true) if error.is_instance_of::<PyException>(py) => Ok(()),
            (Err(error), _) => Err(error),
        }
    }
}

#[pymethods]
impl PySetAcquisition {
    /// The set that it was acquired from.
    #[getter]
    fn limit_set(&self, py: Python<'_>) -> Py<PySharedLimits> {
        self.limit_set.clone_ref(py)
    }

    /// The acquisition of each limit, by key.
    #[getter]
    fn acquisitions(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        Ok(self.acquisitions_of(py)?.clone_ref(py))
    }

    /// A copy of the config of the set; changing it changes nothing else.
    #[getter]
    fn config(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let copy = || Ok::<_, PyErr>(self.limit_set.get().config().bind(py).copy()?.unbind());
        Ok(self.config.get_or_try_init(py, copy)?.clone_ref(py))
    }

    #[getter]
    fn _released(&self) -> bool {
        self.held.is_released()
    }

    /// Notes what was used, by key. The last report of a limit counts; keys that were not acquired are skipped with a warning.
    fn update(&self, py: Python<'_>, usage: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.held.is_released() {
            return Err(released());
        }
        let usage = dict_of(usage)?;
        // A copy only if there are many: checking a value may run code of the caller, which may change the dict.
        if usage.len() == 1
            && let Some((key, used)) = usage.iter().next()
        {
            return self.report(py, &key, &used);
        }
        for (key, used) in usage.copy()?.iter() {
            self.report(py, &key, &used)?;
        }
        Ok(())
    }

    /// Ends it: resources are free, and what was not used is given back. Raises afterwards if the usage of a rate is missing.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.leave(py, false)
    }

    /// Ends it, whatever was reported.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py).map(drop)
    }

    /// Ends it with what was used of its only limit.
    fn _end_with(&self, py: Python<'_>, used: &Bound<'_, PyAny>) -> PyResult<()> {
        let set = self.limit_set.get();
        let Some(part) = self.held.parts.first() else { return Ok(()) };
        self.held.end_with(py, set.limits()[part.limit].count_used(used)?, set.first_poll())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (exc_type, _exc, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyType>>,
        _exc: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.leave(py, exc_type.is_some())
    }

    fn __aenter__(slf: Bound<'_, Self>) -> Pending {
        let this = slf.into_any().unbind();
        Pending::new("LimitSetAcquisition.__aenter__", Box::new(move |_| Ok(Begun::Ended(this))))
    }

    #[pyo3(signature = (exc_type, _exc, _traceback))]
    fn __aexit__(
        slf: &Bound<'_, Self>,
        exc_type: Option<&Bound<'_, PyType>>,
        _exc: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> Pending {
        let (this, is_raised) = (slf.clone().unbind(), exc_type.is_some());
        let begin = move |py: Python<'_>| this.get().end_later(py, is_raised);
        Pending::new("LimitSetAcquisition.__aexit__", Box::new(begin))
    }

    fn __reduce__(&self) -> PyResult<()> {
        let text = "an acquisition belongs to the process that made it and cannot be pickled; pass the set, and acquire there";
        Err(PyTypeError::new_err(text))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let keys = self.acquisitions_of(py)?.bind(py).keys().repr()?;
        let state = match (self.successful, self.held.is_released()) {
            (false, _) => "failed",
            (true, false) => "held",
            (true, true) => "released",
        };
        Ok(format!("<LimitSetAcquisition {} {state}>", keys.to_string_lossy()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.limit_set)
    }
}

impl PySetAcquisition {
    #[inline]
    fn report(&self, py: Python<'_>, key: &Bound<'_, PyAny>, used: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.place(key) {
            Some(place) => {
                let limit = &self.limit_set.get().limits()[self.held.parts[place].limit];
                self.held.report(place, limit, used, ReportSource::Set)
            }
            None => self.warn_of_unknown(py, key),
        }
    }
}

/// What a call has taken from one limit.
#[pyclass(frozen, name = "Acquisition", module = "tollgate.compat.concurry", weakref)]
pub(crate) struct PyAcquisition {
    #[pyo3(get)]
    limit: Py<PyAny>,
    #[pyo3(get)]
    requested: Py<PyAny>,
    #[pyo3(get)]
    successful: bool,
    of: AcquisitionOf,
}

/// What the acquisition of a limit belongs to.
enum AcquisitionOf {
    Set {
        held: Arc<HeldParts>,
        limit_set: Py<PySharedLimits>,
        place: usize,
    },
    /// To nothing: the caller made it.
    Caller(Mutex<(Option<Py<PyAny>>, bool)>),
}

#[pymethods]
impl PyAcquisition {
    #[new]
    #[pyo3(signature = (limit, requested, successful=true))]
    fn new(limit: Py<PyAny>, requested: Py<PyAny>, successful: bool) -> PyAcquisition {
        PyAcquisition { limit, requested, successful, of: AcquisitionOf::Caller(Mutex::new((None, false))) }
    }

    /// What was reported; `None` until then.
    #[getter]
    fn used(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &self.of {
            AcquisitionOf::Set { held, place, .. } => held.used(py, *place),
            AcquisitionOf::Caller(state) => state.lock().0.as_ref().map(|used| used.clone_ref(py)),
        }
    }

    #[getter]
    fn _released(&self) -> bool {
        match &self.of {
            AcquisitionOf::Set { held, place, .. } => held.is_part_released(*place),
            AcquisitionOf::Caller(state) => state.lock().1,
        }
    }

    /// Notes what was used.
    fn update(&self, py: Python<'_>, used: &Bound<'_, PyAny>) -> PyResult<()> {
        if self._released() {
            return Err(released());
        }
        match &self.of {
            AcquisitionOf::Set { held, limit_set, place } => {
                let limit = &limit_set.get().limits()[held.parts[*place].limit];
                held.report(*place, limit, used, ReportSource::Part)
            }
            AcquisitionOf::Caller(state) => {
                if !used.ge(0)? {
                    let text = format!("the usage cannot be negative, but is {}", crate::amount::shown(used));
                    return Err(pyo3::exceptions::PyValueError::new_err(text));
                }
                self.limit.bind(py).call_method1(intern!(py, "validate_usage"), (&self.requested, used))?;
                let before = state.lock().0.replace(used.clone().unbind());
                drop(before);
                Ok(())
            }
        }
    }

    /// Allows no further report. What was taken is held until the acquisition of the set is released.
    fn release(&self) {
        match &self.of {
            AcquisitionOf::Set { held, place, .. } => held.release_part(*place),
            AcquisitionOf::Caller(state) => state.lock().1 = true,
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.release();
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = self.limit.bind(py).getattr(intern!(py, "key"))?;
        let key = key.cast::<PyString>().map(|key| key.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(format!("<Acquisition {key}: {} requested>", self.requested.bind(py).repr()?.to_string_lossy()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.limit)?;
        if let AcquisitionOf::Set { limit_set, .. } = &self.of {
            visit.call(limit_set)?;
        }
        Ok(())
    }
}
