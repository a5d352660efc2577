//! Limit sets: several limits taken together or not at all.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use tollgate::{AsDemand, Attempt, Demand, Lease, Limit, LimitSet, Limits, Priority, Reach, calendar};

use crate::amount::{shown, span, text};
use crate::demand::{NamedAmounts, PyDemand, UnitLookup, owned_demand};
use crate::denial::PyDenial;
use crate::error::{OrRaise, invalid};
use crate::lease::PyLease;
use crate::limit::{PyLimit, tuple_of};
use crate::observing::{ObserverTarget, deliver};
use crate::set_settings::{BuiltSet, SetSettings, StoredPlace};
use crate::status::PySetStatus;
use crate::stores::OpenedStore;
use crate::wait::pending::{Begun, Pending};
use crate::wait::thread::{block_on, run};
use crate::wait::{FirstPoll, PendingOp, operation};
use crate::wait_for::{WaitFor, priority_of};

/// Several limits that are taken together or not at all. A set lives in this process, or in a store that processes and hosts share.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.per_minute("rpm", 500), tg.resource("connections", 16)])
/// with limits.acquire({"rpm": 1}, timeout=30) as lease:
///     ...  # call the API
///
/// # All processes that open the same store and name share the set.
/// shared = tg.LimitSet([tg.per_minute("rpm", 500)], store="file:limits.db", name="openai/blue")
/// ```
///
/// Stores are `shm:NAME` (memory that the processes of a host share), `file:PATH`, `redis://HOST` and `dynamodb:TABLE`. A process has
/// one handle for each URL and its settings. `shm:` alone is anonymous memory of this process and of those that it hands the set to;
/// it ends with this process. A set in a store can be pickled; its URL is in the pickle, with the password if there is one.
///
/// Settings, all by keyword:
///
/// - `store`, `name`, `namespace`: where it is. A set in a store must have a name.
/// - `config`: a dict that its leases pass on, such as the region to call.
/// - `skip_unknown`: skip names in demands that are no limits here, with one warning each. By default they are errors.
/// - `on_drop`: what a lease that is dropped without an end gives back: its resources ("keep"), or all ("refund").
/// - `lease_ttl`: after how many seconds without a heartbeat resources are taken from their holder.
/// - `waiters_max`: how many callers may wait.
/// - `version`, `without`: in a store the numbers of a later version stay in force; `without` names limits that it has removed.
/// - `on_unavailable`, `local_share`: while the store does not answer, "block" raises `Unavailable`, "allow" admits, and "local" admits
///   at a share of each limit, in percent, kept by this process alone.
/// - `store_timeout`, `connect_within`: how long a call to the store may take, and opening it while no server accepts.
/// - `observer`: a function of an `Event`, or an object with methods such as `on_denied(event)`. What it raises is logged.
/// - `clock`: a `tollgate.testing.ManualClock`, for tests.
#[pyclass(frozen, name = "LimitSet", module = "tollgate", weakref)]
pub(crate) struct PyLimitSet {
    set: LimitSet,
    limits: Limits,
    config: Py<PyDict>,
    /// Where it is, if it is in a store.
    stored: Option<StoredPlace>,
    observer: Option<Arc<ObserverTarget>>,
    /// Whether it is in this process and nothing observes it: then a try costs next to nothing, and nothing else notices it.
    is_plain: bool,
}

/// The function that opens a pickled set, and what it is called with: the limits and the settings.
type PickledSet<'py> = (Bound<'py, PyAny>, (String, Bound<'py, PyDict>));

/// Acquires from a set, in a future that owns it.
async fn acquire(
    set: LimitSet,
    demand: Demand,
    wait: WaitFor,
) -> Result<Lease<'static>, tollgate::AcquireError> {
    let mut acquire = set.acquire(&demand).priority(wait.priority);
    if let Some(timeout) = wait.timeout {
        acquire = acquire.timeout(timeout);
    }
    acquire.await.map(Lease::into_owned)
}

/// Tries to acquire from a set, in a future that owns it.
async fn try_acquire(
    set: LimitSet,
    demand: Demand,
    priority: Priority,
) -> Result<Attempt<Lease<'static>>, tollgate::AcquireError> {
    Ok(match set.try_acquire(&demand).priority(priority).await? {
        Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
        Attempt::Denied(denial) => Attempt::Denied(denial),
    })
}

impl PyLimitSet {
    fn of_settings(
        py: Python<'_>,
        settings: SetSettings,
        store: Option<OpenedStore>,
    ) -> PyResult<PyLimitSet> {
        let BuiltSet { set, config, observer, stored } = settings.build(py, store)?;
        let is_plain = stored.is_none() && observer.is_none();
        Ok(PyLimitSet { limits: set.limits(), set, config, stored, observer, is_plain })
    }

    /// Returns the set of the library.
    pub(crate) fn inner(&self) -> &LimitSet {
        &self.set
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Returns the limits that the set was made with, to look up names.
    pub(crate) fn names(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn first_poll(&self) -> FirstPoll {
        if self.stored.is_none() { FirstPoll::Attached } else { FirstPoll::Detached }
    }

    pub(crate) fn config_copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.config.bind(py).copy()
    }

    /// Returns whether a lease that is dropped may have held what others wait for.
    pub(crate) fn warns_of_drops(&self) -> bool {
        self.limits.have_resources()
    }

    /// Takes the demand if it is admitted at once, by a set that nothing else would notice it of.
    #[inline]
    fn try_plain(
        slf: &Bound<'_, Self>,
        demand: &impl AsDemand,
        priority: Priority,
    ) -> PyResult<Option<Attempt<PyLease>>> {
        let this = slf.get();
        if !this.is_plain {
            return Ok(None);
        }
        let attempt = this.set.try_acquire(demand).priority(priority).wait();
        deliver(slf.py());
        Ok(Some(match attempt.or_raise(slf.py())? {
            Attempt::Admitted(lease) => {
                Attempt::Admitted(PyLease::new(lease.into_owned(), slf.clone().unbind()))
            }
            Attempt::Denied(denial) => Attempt::Denied(denial),
        }))
    }

    fn acquire_operation(slf: &Bound<'_, Self>, demand: Demand, wait: WaitFor) -> PendingOp {
        let (set, owner) = (slf.get().set.clone(), slf.clone().unbind());
        operation(acquire(set, demand, wait), |py, acquired| {
            Ok(Py::new(py, PyLease::new(acquired.or_raise(py)?, owner))?.into_any())
        })
    }

    fn try_operation(slf: &Bound<'_, Self>, demand: Demand, priority: Priority) -> PendingOp {
        let (set, owner) = (slf.get().set.clone(), slf.clone().unbind());
        operation(try_acquire(set, demand, priority), |py, attempt| {
            attempted(py, attempt.or_raise(py)?, owner)
        })
    }

    fn run(&self, py: Python<'_>, operation: PendingOp) -> PyResult<Py<PyAny>> {
        run(py, operation, self.first_poll())
    }

    /// Returns an awaitable of an operation.
    fn later(
        slf: &Bound<'_, Self>,
        name: &'static str,
        begin: impl FnOnce(&Bound<'_, Self>) -> PyResult<PendingOp> + Send + 'static,
    ) -> Pending {
        let this = slf.clone().unbind();
        Pending::new(
            name,
            Box::new(move |py| {
                let slf = this.bind(py);
                Ok(Begun::UnderWay(begin(slf)?, slf.get().first_poll()))
            }),
        )
    }

    fn peek_operation(slf: &Bound<'_, Self>) -> PyResult<PendingOp> {
        let set = slf.get().set.clone();
        let peeked = async move { (set.peek().await, set.clock().now()) };
        Ok(operation(peeked, |py, (status, now)| PySetStatus::of(py, &status.or_raise(py)?, now)))
    }
}

fn attempted(py: Python<'_>, attempt: Attempt<Lease<'static>>, owner: Py<PyLimitSet>) -> PyResult<Py<PyAny>> {
    Ok(match attempt {
        Attempt::Admitted(lease) => Py::new(py, PyLease::new(lease, owner))?.into_any(),
        Attempt::Denied(denial) => Py::new(py, PyDenial::of_set(denial))?.into_any(),
    })
}

/// The demand of a call: prepared, or collected from a dict and keywords.
pub(crate) enum CallDemand<'a, 'py> {
    Prepared(&'a Demand),
    Collected(NamedAmounts<'py>),
}

impl<'a, 'py> CallDemand<'a, 'py> {
    #[inline]
    pub(crate) fn of(
        py: Python<'py>,
        demand: Option<&'a Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
        units: &impl UnitLookup,
    ) -> PyResult<CallDemand<'a, 'py>> {
        if let (Some(demand), None) = (demand, named)
            && let Ok(prepared) = demand.cast_exact::<PyDemand>()
        {
            return Ok(CallDemand::Prepared(&prepared.get().0));
        }
        Ok(CallDemand::Collected(NamedAmounts::collect(py, demand, named, units)?))
    }

    pub(crate) fn to_owned(&self) -> Demand {
        match self {
            CallDemand::Prepared(demand) => (*demand).clone(),
            CallDemand::Collected(demand) => Demand::copy_of(demand),
        }
    }
}

fn replace(slf: &Bound<'_, PyLimitSet>, limit: &Limit) -> PendingOp {
    let (set, limit) = (slf.get().set.clone(), limit.clone());
    operation(async move { set.replace(limit).await }, |py, replaced| replaced.or_raise(py))
}

fn remove(slf: &Bound<'_, PyLimitSet>, name: &str) -> PendingOp {
    let (set, name) = (slf.get().set.clone(), name.to_owned());
    operation(async move { set.remove(&name).await }, |py, removed| removed.or_raise(py))
}

fn cool_down(slf: &Bound<'_, PyLimitSet>, duration: Duration) -> PendingOp {
    let set = slf.get().set.clone();
    operation(async move { set.cool_down(duration).await }, |py, cooled| cooled.or_raise(py))
}

fn end_cool_down(slf: &Bound<'_, PyLimitSet>) -> PendingOp {
    let set = slf.get().set.clone();
    operation(async move { set.end_cool_down().await }, |py, ended| ended.or_raise(py))
}

fn limit_of(limit: &Bound<'_, PyAny>) -> PyResult<Limit> {
    let found = limit.cast::<PyLimit>().map(|limit| limit.get().0.clone());
    found.map_err(|_| PyTypeError::new_err(format!("{} is not a Limit", shown(limit))))
}

fn ready_after(slf: &Bound<'_, PyLimitSet>, demand: Demand) -> PendingOp {
    let set = slf.get().set.clone();
    let ready = async move { (set.ready(&demand).await, set.clock().now()) };
    operation(ready, |py, (ready, now)| Ok(ready.or_raise(py)?.wait(now).map(|wait| wait.as_secs_f64())))
}

#[pymethods]
impl PyLimitSet {
    #[new]
    #[pyo3(signature = (limits, **settings), text_signature = "(limits, *, store=None, name=None, namespace=None, config=None, \
        skip_unknown=False, on_drop='keep', lease_ttl=None, waiters_max=None, version=1, without=(), on_unavailable='block', \
        local_share=50, store_timeout=5.0, connect_within=None, observer=None, clock=None)")]
    fn new(
        py: Python<'_>,
        limits: &Bound<'_, PyAny>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyLimitSet> {
        let settings = SetSettings::of(limits, settings)?;
        let store = match &settings.address {
            Some(address) => Some(block_on(py, address.clone().open(), FirstPoll::Detached)?.or_raise(py)?),
            None => None,
        };
        PyLimitSet::of_settings(py, settings, store)
    }

    /// Makes a set in an event loop, which goes on while the store is opened: `limits = await tg.LimitSet.open_async([...],
    /// store="redis://localhost", name="openai/blue")`.
    #[staticmethod]
    #[pyo3(signature = (limits, **settings), text_signature = "(limits, *, store=None, **settings)")]
    fn open_async(limits: &Bound<'_, PyAny>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Pending> {
        let settings = SetSettings::of(limits, settings)?;
        let begin = move |py: Python<'_>| {
            let Some(address) = settings.address.clone() else {
                let set = PyLimitSet::of_settings(py, settings, None)?;
                return Ok(Begun::Ended(Py::new(py, set)?.into_any()));
            };
            let opened = operation(address.open(), |py, opened| {
                Py::new(py, PyLimitSet::of_settings(py, settings, Some(opened.or_raise(py)?))?)
            });
            Ok(Begun::UnderWay(opened, FirstPoll::Detached))
        };
        Ok(Pending::new("LimitSet.open_async", Box::new(begin)))
    }

    /// Takes the demand, and waits its turn for it: until `timeout` (seconds or a `timedelta`) if there is one. Returns a `Lease`.
    ///
    /// Raises `TimedOut` as soon as it is known that the wait cannot fit, and `Impossible` for a demand that never will. Waiters of one
    /// priority ("interactive", "normal", "batch") are served in the order of their arrival.
    #[pyo3(signature = (demand=None, /, *, timeout=None, priority=None, **named))]
    fn acquire(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let wait = WaitFor::of(py, timeout, priority)?;
        let demand = CallDemand::of(py, demand, named, &this.limits)?;
        let attempt = match &demand {
            CallDemand::Prepared(demand) => PyLimitSet::try_plain(slf, *demand, wait.priority)?,
            CallDemand::Collected(demand) => PyLimitSet::try_plain(slf, demand, wait.priority)?,
        };
        match attempt {
            Some(Attempt::Admitted(lease)) => Ok(Py::new(py, lease)?.into_any()),
            _ => this.run(py, PyLimitSet::acquire_operation(slf, demand.to_owned(), wait)),
        }
    }

    /// As `acquire`, in an event loop: `lease = await limits.acquire_async(...)` or `async with limits.acquire_async(...) as lease`.
    #[pyo3(signature = (demand=None, /, *, timeout=None, priority=None, **named))]
    fn acquire_async(
        slf: &Bound<'_, Self>,
        demand: Option<Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
        named: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let wait = WaitFor::of(slf.py(), timeout, priority)?;
        let (this, demand, named) =
            (slf.clone().unbind(), demand.map(Bound::unbind), named.map(Bound::unbind));
        let begin = move |py: Python<'_>| {
            let slf = this.bind(py);
            let (demand, named) = (demand.as_ref().map(|d| d.bind(py)), named.as_ref().map(|n| n.bind(py)));
            let demand = CallDemand::of(py, demand, named, &slf.get().limits)?;
            let attempt = match &demand {
                CallDemand::Prepared(demand) => PyLimitSet::try_plain(slf, *demand, wait.priority)?,
                CallDemand::Collected(demand) => PyLimitSet::try_plain(slf, demand, wait.priority)?,
            };
            if let Some(Attempt::Admitted(lease)) = attempt {
                return Ok(Begun::Ended(Py::new(py, lease)?.into_any()));
            }
            let acquired = PyLimitSet::acquire_operation(slf, demand.to_owned(), wait);
            Ok(Begun::UnderWay(acquired, slf.get().first_poll()))
        };
        Ok(Pending::new("LimitSet.acquire_async", Box::new(begin)))
    }

    /// Takes the demand now and returns a `Lease`, or a `Denial`, which is false, with the wait. Never waits, never overtakes waiters.
    #[pyo3(signature = (demand=None, /, *, priority=None, **named))]
    fn try_acquire(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let priority = priority_of(py, priority)?;
        let demand = CallDemand::of(py, demand, named, &this.limits)?;
        let attempt = match &demand {
            CallDemand::Prepared(demand) => PyLimitSet::try_plain(slf, *demand, priority)?,
            CallDemand::Collected(demand) => PyLimitSet::try_plain(slf, demand, priority)?,
        };
        match attempt {
            Some(Attempt::Admitted(lease)) => Ok(Py::new(py, lease)?.into_any()),
            Some(Attempt::Denied(denial)) => Ok(Py::new(py, PyDenial::of_set(denial))?.into_any()),
            None => this.run(py, PyLimitSet::try_operation(slf, demand.to_owned(), priority)),
        }
    }

    /// As `try_acquire`, in an event loop.
    #[pyo3(signature = (demand=None, /, *, priority=None, **named))]
    fn try_acquire_async(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let (py, this) = (slf.py(), slf.get());
        let priority = priority_of(py, priority)?;
        let demand = owned_demand(py, demand, named, &this.limits)?;
        Ok(PyLimitSet::later(slf, "LimitSet.try_acquire_async", move |slf| {
            Ok(PyLimitSet::try_operation(slf, demand, priority))
        }))
    }

    /// Decorates a function, a coroutine function, a generator or a method: each call acquires first, and its lease is settled with
    /// what `settle` returns for the result. The demand may be a function of the arguments. See `tollgate.limit`.
    #[pyo3(signature = (demand=None, /, **options))]
    fn limit<'py>(
        slf: &Bound<'py, Self>,
        demand: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Imported by the package; a decorator runs when a module is, not in a signal handler.
        let limit = slf.py().import("tollgate._decorators")?.getattr("limit")?;
        limit.call((slf, demand), options)
    }

    /// Checks a demand and keeps it for many calls: `d = limits.demand(rpm=1, tpm=1500)`, then `limits.acquire(d)`.
    #[pyo3(signature = (demand=None, /, **named))]
    fn demand(
        &self,
        py: Python<'_>,
        demand: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyDemand> {
        let demand = owned_demand(py, demand, named, &self.limits)?;
        self.limits.costs(&demand).or_raise(py)?;
        Ok(PyDemand(demand))
    }

    /// Returns how many seconds until the demand would be admitted if it came now; `None` if that depends on others.
    #[pyo3(signature = (demand=None, /, **named))]
    fn ready_after(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let demand = owned_demand(py, demand, named, &this.limits)?;
        this.run(py, ready_after(slf, demand))
    }

    /// As `ready_after`, in an event loop.
    #[pyo3(signature = (demand=None, /, **named))]
    fn ready_after_async(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let demand = owned_demand(slf.py(), demand, named, &slf.get().limits)?;
        Ok(PyLimitSet::later(slf, "LimitSet.ready_after_async", move |slf| Ok(ready_after(slf, demand))))
    }

    /// Returns the status of every limit, the number of waiters and the cooldown. Changes nothing.
    fn peek(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        slf.get().run(slf.py(), PyLimitSet::peek_operation(slf)?)
    }

    /// As `peek`, in an event loop.
    fn peek_async(slf: &Bound<'_, Self>) -> Pending {
        PyLimitSet::later(slf, "LimitSet.peek_async", PyLimitSet::peek_operation)
    }

    /// Puts another limit in force in place of the one of the same name, at once, for all callers. What was used is carried over.
    fn replace(slf: &Bound<'_, Self>, limit: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().run(slf.py(), replace(slf, &limit_of(limit)?)).map(drop)
    }

    /// As `replace`, in an event loop.
    fn replace_async(slf: &Bound<'_, Self>, limit: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let limit = limit_of(limit)?;
        Ok(PyLimitSet::later(slf, "LimitSet.replace_async", move |slf| Ok(replace(slf, &limit))))
    }

    /// Removes a limit, at once, for all callers: it denies nothing any more.
    fn remove(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        slf.get().run(slf.py(), remove(slf, text("name", name)?)).map(drop)
    }

    /// As `remove`, in an event loop.
    fn remove_async(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Pending> {
        let name = text("name", name)?.to_owned();
        Ok(PyLimitSet::later(slf, "LimitSet.remove_async", move |slf| Ok(remove(slf, &name))))
    }

    /// Admits no caller for so many seconds: the provider said "not now". Extends a cooldown, never shortens one.
    fn cool_down(slf: &Bound<'_, Self>, duration: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().run(slf.py(), cool_down(slf, span("duration", duration)?)).map(drop)
    }

    /// As `cool_down`, in an event loop.
    fn cool_down_async(slf: &Bound<'_, Self>, duration: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let duration = span("duration", duration)?;
        Ok(PyLimitSet::later(slf, "LimitSet.cool_down_async", move |slf| Ok(cool_down(slf, duration))))
    }

    /// Ends a cooldown before its time.
    fn end_cool_down(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.get().run(slf.py(), end_cool_down(slf)).map(drop)
    }

    /// As `end_cool_down`, in an event loop.
    fn end_cool_down_async(slf: &Bound<'_, Self>) -> Pending {
        PyLimitSet::later(slf, "LimitSet.end_cool_down_async", |slf| Ok(end_cool_down(slf)))
    }

    /// The limits in force.
    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple_of(py, &self.set.limits())
    }

    /// A copy of the config.
    #[getter]
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.config_copy(py)
    }

    /// The name in its store; `None` for a set in this process.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.set.name()
    }

    /// The URL of its store, without a password; `None` for a set in this process.
    #[getter]
    fn store(&self) -> Option<String> {
        self.stored.as_ref().map(|place| place.address.redacted())
    }

    /// Who shares it: "process", "host" or "fleet".
    #[getter]
    fn reach(&self) -> &'static str {
        match self.set.reach() {
            Reach::Process => "process",
            Reach::Host => "host",
            _ => "fleet",
        }
    }

    fn __getitem__(&self, name: &str) -> PyResult<PyLimit> {
        self.set.limit(name).map(PyLimit).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.set.limit(name).is_some()
    }

    fn __len__(&self) -> usize {
        self.limits.len()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let limits: Vec<String> = self.set.limits().iter().map(ToString::to_string).collect();
        let name = self.set.name().map(|name| format!(" {name:?}")).unwrap_or_default();
        let _ = py;
        format!("<LimitSet{name} [{}]>", limits.join("; "))
    }

    /// A set in a store is pickled by what opens it: its URL, with the password if there is one, and its settings. Observers stay
    /// behind.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<PickledSet<'py>> {
        let Some(place) = self.stored.as_ref().filter(|place| !place.address.is_memory()) else {
            let text = "a set in the memory of this process cannot be pickled, because the copy would limit apart from it; give the \
                        set a store that the processes share: LimitSet(..., store=\"shm:\")";
            return Err(PyTypeError::new_err(text));
        };
        let settings = place.given.bind(py).copy()?;
        settings.set_item("store", place.address.with_password())?;
        settings.set_item("config", self.config.bind(py))?;
        Ok((py.get_type::<PyLimitSet>().getattr("_restore")?, (self.limits.to_text(), settings)))
    }

    /// Opens a set that was pickled.
    #[staticmethod]
    fn _restore(py: Python<'_>, limits: &str, settings: &Bound<'_, PyDict>) -> PyResult<PyLimitSet> {
        let limits = Limits::from_text(limits, &|calendar| calendar::parse(calendar).ok());
        let limits = limits.map_err(|error| invalid(py, error.to_string()))?;
        PyLimitSet::new(py, tuple_of(py, &limits)?.as_any(), Some(settings))
    }

    /// A copy is the same set.
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        let _ = memo;
        slf.clone()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.config)?;
        if let Some(place) = &self.stored {
            visit.call(&place.given)?;
        }
        self.observer.as_ref().map_or(Ok(()), |observer| observer.traverse(&visit))
    }

    fn __clear__(&self) {
        if let Some(observer) = &self.observer {
            observer.clear();
        }
    }
}
