//! Sets: what acquires. The classes of Concurry derive from the one here.

use std::time::Duration;

use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};
use smallvec::smallvec;
use tollgate::{AcquireError, Attempt, Lease, LimitSet};

use super::acquisition::PySetAcquisition;
use super::amount_scale::float;
use super::bound_limit::{BoundLimit, Counted, LimitKind, LimitSpec};
use super::held::HeldParts;
use super::requested::{CountedDemand, TakenPart, TakenParts, name, taken_parts};
use crate::error::{IntoPyErr, OrRaise};
use crate::stores::{StoreAddress, StoreOptions};
use crate::wait::pending::{Begun, Pending};
use crate::wait::thread::block_on_in_loop;
use crate::wait::{Finish, FirstPoll, PendingOp, operation};

/// The limits of a set and their state, in this process or in a store that processes share.
#[pyclass(frozen, subclass, name = "SharedLimits", module = "tollgate._core", weakref)]
pub(crate) struct PySharedLimits {
    /// `None` without limits: everything is admitted.
    set: Option<LimitSet>,
    limits: Box<[BoundLimit]>,
    config: Py<PyDict>,
    /// Where it is, if it is in a store.
    store: Option<StoreAddress>,
}

/// How long a call waits: the caller's number, for an error, and the time.
struct TimeLimit {
    shown: Option<String>,
    duration: Option<Duration>,
}

/// Longer waits are without an end.
const SECONDS_MAX: f64 = 3_200_000_000.0;

impl TimeLimit {
    fn of(timeout: Option<&Bound<'_, PyAny>>) -> PyResult<TimeLimit> {
        let Some(timeout) = timeout else { return Ok(TimeLimit { shown: None, duration: None }) };
        let seconds = float(timeout)?;
        if seconds.is_nan() {
            return Err(PyValueError::new_err("timeout is nan, but must be a number of seconds"));
        }
        let duration = (seconds <= SECONDS_MAX).then(|| Duration::from_secs_f64(seconds.max(0.0)));
        Ok(TimeLimit { shown: Some(timeout.str()?.to_string_lossy().into_owned()), duration })
    }

    #[cold]
    fn error(&self, py: Python<'_>, error: AcquireError) -> PyErr {
        match error {
            AcquireError::TimedOut { .. } => {
                let seconds = self.shown.as_deref().unwrap_or("0");
                PyTimeoutError::new_err(format!("Failed to acquire all limits within {seconds}s"))
            }
            error => error.into_py_err(py),
        }
    }
}

impl PySharedLimits {
    pub(super) fn limits(&self) -> &[BoundLimit] {
        &self.limits
    }

    pub(super) fn config(&self) -> &Py<PyDict> {
        &self.config
    }

    pub(super) fn first_poll(&self) -> FirstPoll {
        match &self.set {
            Some(set) if set.name().is_some() => FirstPoll::Detached,
            _ => FirstPoll::Attached,
        }
    }

    /// Takes the parts if they are admitted at once, from a set in this process.
    #[inline]
    fn try_local(&self, py: Python<'_>, parts: &[TakenPart]) -> PyResult<Option<Attempt<Lease<'static>>>> {
        match &self.set {
            Some(set) if set.name().is_none() => {
                let attempt = set.try_acquire(CountedDemand::of(parts)).wait().or_raise(py)?;
                Ok(Some(match attempt {
                    Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
                    Attempt::Denied(denial) => Attempt::Denied(denial),
                }))
            }
            _ => Ok(None),
        }
    }

    /// Acquires the parts, in an operation that owns them.
    fn acquire_operation(
        slf: &Bound<'_, Self>,
        set: LimitSet,
        parts: TakenParts,
        limit: TimeLimit,
    ) -> PendingOp {
        let owner = slf.clone().unbind();
        let demand = CountedDemand::of(&parts);
        let duration = limit.duration;
        let acquired = async move {
            let mut acquire = set.acquire(&demand);
            if let Some(duration) = duration {
                acquire = acquire.timeout(duration);
            }
            acquire.await.map(Lease::into_owned)
        };
        operation(acquired, move |py, acquired| {
            let lease = acquired.map_err(|error| limit.error(py, error))?;
            Py::new(py, PySetAcquisition::new(owner, HeldParts::new(parts, Some(lease)), true))
        })
    }

    /// Acquires the parts, now or in an operation.
    #[inline]
    fn begin(
        slf: &Bound<'_, Self>,
        parts: TakenParts,
        limit: impl FnOnce() -> PyResult<TimeLimit>,
    ) -> PyResult<StartedAcquire> {
        let (py, this) = (slf.py(), slf.get());
        let held = |parts, lease| {
            Py::new(py, PySetAcquisition::new(slf.clone().unbind(), HeldParts::new(parts, lease), true))
        };
        let Some(set) = this.set.as_ref().filter(|_| !parts.is_empty()) else {
            return Ok(StartedAcquire::Held(held(parts, None)?));
        };
        match this.try_local(py, &parts)? {
            Some(Attempt::Admitted(lease)) => Ok(StartedAcquire::Held(held(parts, Some(lease))?)),
            _ => Ok(StartedAcquire::Waiting(PySharedLimits::acquire_operation(
                slf,
                set.clone(),
                parts,
                limit()?,
            ))),
        }
    }

    /// Tries to take the parts.
    fn attempt(slf: &Bound<'_, Self>, parts: TakenParts) -> PyResult<Py<PySetAcquisition>> {
        let (py, this) = (slf.py(), slf.get());
        let made = |parts, lease, successful| {
            let held = HeldParts::new(parts, lease);
            Py::new(py, PySetAcquisition::new(slf.clone().unbind(), held, successful))
        };
        let Some(set) = this.set.as_ref().filter(|_| !parts.is_empty()) else {
            return made(parts, None, true);
        };
        let attempt = match this.try_local(py, &parts)? {
            Some(attempt) => attempt,
            None => {
                let demand = CountedDemand::of(&parts);
                let attempt = async { set.try_acquire(&demand).await.map(own) };
                block_on_in_loop(py, attempt, this.first_poll())?.or_raise(py)?
            }
        };
        match attempt {
            Attempt::Admitted(lease) => made(parts, Some(lease), true),
            Attempt::Denied(_) => made(parts, None, false),
        }
    }

    /// Returns what a call takes from one limit alone; `None` if that is more than it ever has.
    fn only(&self, index: usize, amount: &Bound<'_, PyAny>) -> PyResult<Option<TakenParts>> {
        let Counted::Fits(count) = self.limit_at(index)?.count(amount)? else { return Ok(None) };
        let mut parts: TakenParts =
            smallvec![TakenPart { limit: index, requested: amount.clone().unbind(), count }];
        let nothing = amount.py().None();
        let others = self
            .limits
            .iter()
            .enumerate()
            .filter(|(other, limit)| *other != index && limit.kind != LimitKind::Rate);
        parts.extend(others.map(|(limit, _)| TakenPart {
            limit,
            requested: nothing.clone_ref(amount.py()),
            count: 0,
        }));
        Ok(Some(parts))
    }

    fn limit_at(&self, index: usize) -> PyResult<&BoundLimit> {
        self.limits.get(index).ok_or_else(|| PyValueError::new_err("the set has no such limit"))
    }
}

/// What came of an attempt.
enum StartedAcquire {
    Held(Py<PySetAcquisition>),
    Waiting(PendingOp),
}

fn own(attempt: Attempt<Lease<'_>>) -> Attempt<Lease<'static>> {
    match attempt {
        Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
        Attempt::Denied(denial) => Attempt::Denied(denial),
    }
}

#[pymethods]
impl PySharedLimits {
    #[new]
    #[pyo3(signature = (specs, config, store=None))]
    fn new(
        py: Python<'_>,
        specs: Vec<LimitSpec<'_>>,
        config: Py<PyDict>,
        store: Option<(String, String)>,
    ) -> PyResult<PySharedLimits> {
        if specs.len() > tollgate_core::LIMITS_MAX {
            let text = format!(
                "{} limits are too many for a set; at most {}",
                specs.len(),
                tollgate_core::LIMITS_MAX
            );
            return Err(PyValueError::new_err(text));
        }
        let (mut limits, mut made) = (Vec::with_capacity(specs.len()), Vec::with_capacity(specs.len()));
        for (index, spec) in specs.into_iter().enumerate() {
            let (bound, limit) = BoundLimit::of(name(index).as_str(), spec)?;
            limits.push(bound);
            made.push(limit);
        }
        let mut builder = LimitSet::builder().limits(made);
        let mut address = None;
        if let Some((url, name)) = store {
            let parsed = StoreAddress::parse(py, &url, StoreOptions::default())?;
            if parsed.is_memory() {
                let text = "store: the memory of this process is no store that others share";
                return Err(PyValueError::new_err(text));
            }
            let opened = block_on_in_loop(py, parsed.open(), FirstPoll::Detached)?.or_raise(py)?;
            builder = builder.store(opened.backend).name(name);
            address = Some(opened.address);
        }
        let set = if limits.is_empty() { None } else { Some(builder.build().or_raise(py)?) };
        Ok(PySharedLimits { set, limits: limits.into(), config, store: address })
    }

    /// Makes an anonymous store in shared memory, and returns its URL.
    #[staticmethod]
    fn _anonymous_store(py: Python<'_>) -> PyResult<String> {
        Ok(StoreAddress::parse(py, "shm:", StoreOptions::default())?.with_password())
    }

    /// The URL of its store and its name there.
    #[getter]
    fn _address(&self) -> Option<(String, String)> {
        let name = self.set.as_ref()?.name()?.to_owned();
        Some((self.store.as_ref()?.with_password(), name))
    }

    /// The config of the set.
    #[getter(config)]
    fn shared_config(&self, py: Python<'_>) -> Py<PyDict> {
        self.config.clone_ref(py)
    }

    /// Takes the amounts that are requested by key, all or nothing, and waits its turn for them; until `timeout` (seconds) if there is
    /// one. Call limits and resources that are not named count 1. Returns a `LimitSetAcquisition`.
    ///
    /// Raises `TimeoutError` as soon as it is known that the wait cannot fit.
    #[pyo3(signature = (requested=None, timeout=None))]
    fn acquire(
        slf: &Bound<'_, Self>,
        requested: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let parts = taken_parts(slf.as_any(), &this.limits, requested)?;
        match PySharedLimits::begin(slf, parts, || TimeLimit::of(timeout))? {
            StartedAcquire::Held(acquisition) => Ok(acquisition.into_any()),
            // As Concurry, also where it stops an event loop.
            StartedAcquire::Waiting(operation) => {
                let finish: Finish = block_on_in_loop(py, operation, this.first_poll())?;
                finish(py)
            }
        }
    }

    /// As `acquire`, in an event loop.
    #[pyo3(signature = (requested=None, timeout=None))]
    fn async_acquire(
        slf: &Bound<'_, Self>,
        requested: Option<Py<PyAny>>,
        timeout: Option<Py<PyAny>>,
    ) -> Pending {
        let this = slf.clone().unbind();
        let begin = move |py: Python<'_>| {
            let slf = this.bind(py);
            let requested = requested.as_ref().map(|requested| requested.bind(py));
            let parts = taken_parts(slf.as_any(), &slf.get().limits, requested)?;
            let limit = || TimeLimit::of(timeout.as_ref().map(|timeout| timeout.bind(py)));
            Ok(match PySharedLimits::begin(slf, parts, limit)? {
                StartedAcquire::Held(acquisition) => Begun::Ended(acquisition.into_any()),
                StartedAcquire::Waiting(operation) => Begun::UnderWay(operation, slf.get().first_poll()),
            })
        };
        Pending::new("LimitSet.async_acquire", Box::new(begin))
    }

    /// Takes the amounts now, all or nothing. Returns a `LimitSetAcquisition`, `successful` or not. Never waits, never overtakes waiters.
    #[pyo3(signature = (requested=None))]
    fn try_acquire(
        slf: &Bound<'_, Self>,
        requested: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PySetAcquisition>> {
        let parts = taken_parts(slf.as_any(), &slf.get().limits, requested)?;
        PySharedLimits::attempt(slf, parts)
    }

    /// Takes from one limit alone now; `None` if it refuses.
    fn _try_one(
        slf: &Bound<'_, Self>,
        index: usize,
        amount: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Py<PySetAcquisition>>> {
        let Some(parts) = slf.get().only(index, amount)? else { return Ok(None) };
        let acquisition = PySharedLimits::attempt(slf, parts)?;
        Ok(acquisition.get().is_successful().then_some(acquisition))
    }

    /// Takes from one limit alone, and waits for it.
    #[pyo3(signature = (index, amount, timeout=None))]
    fn _acquire_one(
        slf: &Bound<'_, Self>,
        index: usize,
        amount: &Bound<'_, PyAny>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let parts = this.only(index, amount)?.ok_or_else(|| this.limits[index].never(amount))?;
        match PySharedLimits::begin(slf, parts, || TimeLimit::of(timeout))? {
            StartedAcquire::Held(acquisition) => Ok(acquisition.into_any()),
            StartedAcquire::Waiting(operation) => block_on_in_loop(py, operation, this.first_poll())?(py),
        }
    }

    /// Returns whether a limit has as much as `amount` now.
    fn _has(&self, py: Python<'_>, index: usize, amount: &Bound<'_, PyAny>) -> PyResult<bool> {
        let limit = self.limit_at(index)?;
        let Counted::Fits(count) = limit.count(amount)? else { return Ok(false) };
        Ok(count == 0 || self.status(py)?.0[index] >= i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Returns how much of a limit is available now; negative in debt, infinite without a bound.
    fn _available(&self, py: Python<'_>, index: usize) -> PyResult<f64> {
        let limit = self.limit_at(index)?;
        Ok(limit.available(self.status(py)?.0[index]))
    }

    /// Returns how many callers wait.
    fn _waiting(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.status(py)?.1)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.config)?;
        self.limits.iter().try_for_each(|limit| visit.call(&limit.limit))
    }
}

impl PySharedLimits {
    /// Returns the available count of each limit, and the number of waiters.
    fn status(&self, py: Python<'_>) -> PyResult<(Vec<i64>, usize)> {
        let Some(set) = &self.set else { return Ok((Vec::new(), 0)) };
        let status = block_on_in_loop(py, set.peek(), self.first_poll())?.or_raise(py)?;
        let named = |index| status.limit(name(index).as_str()).map_or(0, tollgate::Status::available);
        Ok(((0..self.limits.len()).map(named).collect(), status.waiting))
    }
}
