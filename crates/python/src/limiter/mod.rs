//! The limiter: entities with stored limits.

mod call;
mod error;
mod inspect;
mod options;

pub(crate) use options::POLICIES;

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use pyo3::{PyTraverseError, PyVisit};
use tollgate::{Attempt, Limiter, Reach, Registry};

use crate::catalog::PyCatalog;
use crate::demand::{NoUnits, PyDemand, owned_demand};
use crate::denial::PyDenial;
use crate::error::OrRaise;
use crate::input::{LimitList, TextArgument};
use crate::lease::PyLease;
use crate::observing::ObserverTarget;
use crate::pairs::pairs;
use crate::stores::StoreAddress;
use crate::wait::pending::{Begun, Pending};
use crate::wait::thread::{block_on, run};
use crate::wait::{FirstPoll, operation};
use crate::wait_for::{WaitFor, priority_of};
use call::{CallArguments, CallExtras};
use options::{LimiterOptions, OpenedLimiter};

/// Decides for entities whose limits are stored: those of the entity for the resource, else its default, else those of the resource, else
/// those of the system. An entity that cascades is charged together with its parents, all or nothing.
///
/// The first argument says where everything is kept: "memory", "file:limits.db", "shm:jobs", "redis://host" or "dynamodb:table".
/// `namespace` keeps users of one store apart, and is created unless `create_namespace=False`. `on_unavailable` is what to do while the
/// store does not answer: "block" (an error), "allow", or "local" (a `local_share` of the limits, in percent, in this process). `observer`
/// is called with an `Event` for what happens; `clock` is for tests, in memory only.
///
/// ```python
/// import tollgate as tg
///
/// limiter = tg.Limiter("memory")
/// limiter.catalog.set_limits([tg.per_minute("rpm", 500)], resource="gpt-4")
/// with limiter.acquire("user-1", "gpt-4", {"rpm": 1}, timeout=5) as lease:
///     ...  # call the API
/// ```
#[pyclass(frozen, name = "Limiter", module = "tollgate", weakref)]
pub(crate) struct PyLimiter {
    limiter: Limiter,
    registry: Registry,
    address: StoreAddress,
    /// The keywords that it was made with, for a pickle.
    settings: Py<PyDict>,
    observer: Option<Arc<ObserverTarget>>,
    /// Whether it is in this process and nothing observes it: then a try costs next to nothing, and nothing else notices it.
    is_plain: bool,
}

impl PyLimiter {
    fn of(opened: OpenedLimiter, settings: Py<PyDict>) -> PyLimiter {
        let OpenedLimiter { limiter, registry, address, observer } = opened;
        let is_plain = address.is_memory() && observer.is_none();
        PyLimiter { limiter, registry, address, settings, observer, is_plain }
    }

    #[inline]
    pub(crate) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns where everything is kept, without a password.
    pub(crate) fn store_shown(&self) -> String {
        self.address.redacted()
    }

    /// Returns whether it is in the memory of this process.
    pub(crate) fn is_memory(&self) -> bool {
        self.address.is_memory()
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.is_plain
    }

    pub(crate) fn first_poll(&self) -> FirstPoll {
        if self.is_memory() { FirstPoll::Attached } else { FirstPoll::Detached }
    }
}

/// The function that restores a limiter, with its URL and its keywords.
type LimiterPickle<'py> = (Bound<'py, PyAny>, (String, Bound<'py, PyDict>));

/// Returns a copy of the keywords, which the caller cannot change any more. An observer does not go with a pickle.
fn copy_of<'py>(py: Python<'py>, settings: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
    let copy = settings.map_or_else(|| Ok(PyDict::new(py)), |settings| settings.copy())?;
    if copy.contains("observer")? {
        copy.del_item("observer")?;
    }
    Ok(copy)
}

#[pymethods]
impl PyLimiter {
    #[new]
    #[pyo3(signature = (url, **settings), text_signature = "(url, *, namespace='default', \
        create_namespace=True, principal=None, cache_ttl=60, on_unavailable=None, local_share=50, store_timeout=5, connect_within=None, \
        lease_ttl=None, heartbeats='automatic', on_drop='keep', waiters_max=None, observer=None, clock=None)")]
    fn new(py: Python<'_>, url: TextArgument, settings: Option<&Bound<'_, PyDict>>) -> PyResult<PyLimiter> {
        let options = LimiterOptions::of(settings)?;
        let settings = copy_of(py, settings)?.unbind();
        let address = options.address(py, &url.0)?;
        let first = if address.is_memory() { FirstPoll::Attached } else { FirstPoll::Detached };
        let opened = block_on(py, options.open(address), first)?.or_raise(py)?;
        Ok(PyLimiter::of(opened, settings))
    }

    /// Opens a limiter in an event loop: `limiter = await Limiter.open_async("redis://host", namespace="default")`.
    #[staticmethod]
    #[pyo3(signature = (url, **settings), text_signature = "(url, *, namespace='default', \
        create_namespace=True, principal=None, cache_ttl=60, on_unavailable=None, local_share=50, store_timeout=5, connect_within=None, \
        lease_ttl=None, heartbeats='automatic', on_drop='keep', waiters_max=None, observer=None, clock=None)")]
    fn open_async(
        py: Python<'_>,
        url: TextArgument,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let options = LimiterOptions::of(settings)?;
        let settings = copy_of(py, settings)?.unbind();
        let address = options.address(py, &url.0)?;
        let opened = operation(options.open(address), |py, opened| {
            Py::new(py, PyLimiter::of(opened.or_raise(py)?, settings))
        });
        Ok(Pending::of("Limiter.open_async", opened, FirstPoll::Detached))
    }

    /// Takes the demand from the entity and, where it cascades, from its parents, and waits its turn for it: until `timeout` (seconds or a
    /// `timedelta`) if there is one. Returns a `Lease`.
    ///
    /// `also` takes from other resources as well, all or nothing: `also={"embeddings": {"rpm": 1}}`. `limits` stand in for the stored ones,
    /// for this call. `detached` is for leases that are handed on by `into_token`: what they hold of resources is free after so many
    /// seconds. Raises `TimedOut` as soon as it is known that the wait cannot fit, and `Impossible` for a demand that never will.
    ///
    /// ```python
    /// with limiter.acquire("user-1", "gpt-4", {"rpm": 1, "tpm": 500}, timeout=5) as lease:
    ///     lease.adjust(tpm=+120)
    /// ```
    #[pyo3(signature = (
        entity, resource, demand=None, /, *, also=None, limits=None, detached=None, timeout=None, priority=None, **named
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn acquire<'py>(
        slf: &Bound<'py, Self>,
        entity: &Bound<'py, PyString>,
        resource: &Bound<'py, PyString>,
        demand: Option<&Bound<'py, PyAny>>,
        also: Option<&Bound<'py, PyAny>>,
        limits: Option<LimitList>,
        detached: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        priority: Option<TextArgument>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let wait = WaitFor::of(py, timeout, priority.as_deref())?;
        let extras = CallExtras::of(also, limits, detached)?;
        let call = CallArguments::of(entity, resource, demand, named, extras)?;
        if let Some(Attempt::Admitted(lease)) = call.try_plain(slf, wait.priority)? {
            return Ok(Py::new(py, lease)?.into_any());
        }
        let acquired = PyLimiter::acquire_operation(slf, call.into_call(), wait);
        run(py, acquired, slf.get().first_poll())
    }

    /// As `acquire`, in an event loop: `lease = await limiter.acquire_async(...)` or `async with limiter.acquire_async(...) as lease`.
    #[pyo3(signature = (
        entity, resource, demand=None, /, *, also=None, limits=None, detached=None, timeout=None, priority=None, **named
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn acquire_async<'py>(
        slf: &Bound<'py, Self>,
        entity: Bound<'py, PyString>,
        resource: Bound<'py, PyString>,
        demand: Option<Bound<'py, PyAny>>,
        also: Option<&Bound<'py, PyAny>>,
        limits: Option<LimitList>,
        detached: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        priority: Option<TextArgument>,
        named: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Pending> {
        let wait = WaitFor::of(slf.py(), timeout, priority.as_deref())?;
        let extras = CallExtras::of(also, limits, detached)?;
        let (this, entity, resource) = (slf.clone().unbind(), entity.unbind(), resource.unbind());
        let (demand, named) = (demand.map(Bound::unbind), named.map(Bound::unbind));
        let begin = move |py: Python<'_>| {
            let slf = this.bind(py);
            let (demand, named) = (demand.as_ref().map(|d| d.bind(py)), named.as_ref().map(|n| n.bind(py)));
            let call = CallArguments::of(entity.bind(py), resource.bind(py), demand, named, extras)?;
            if let Some(Attempt::Admitted(lease)) = call.try_plain(slf, wait.priority)? {
                return Ok(Begun::Ended(Py::new(py, lease)?.into_any()));
            }
            let acquired = PyLimiter::acquire_operation(slf, call.into_call(), wait);
            Ok(Begun::UnderWay(acquired, slf.get().first_poll()))
        };
        Ok(Pending::new("Limiter.acquire_async", Box::new(begin)))
    }

    /// Takes the demand now and returns a `Lease`, or a `Denial`, which is false, with the status of every limit of every entity that it
    /// would be charged to. Never waits, never overtakes waiters. The keywords are those of `acquire`.
    #[pyo3(signature = (
        entity, resource, demand=None, /, *, also=None, limits=None, detached=None, priority=None, **named
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn try_acquire<'py>(
        slf: &Bound<'py, Self>,
        entity: &Bound<'py, PyString>,
        resource: &Bound<'py, PyString>,
        demand: Option<&Bound<'py, PyAny>>,
        also: Option<&Bound<'py, PyAny>>,
        limits: Option<LimitList>,
        detached: Option<&Bound<'py, PyAny>>,
        priority: Option<TextArgument>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let priority = priority_of(py, priority.as_deref())?;
        let extras = CallExtras::of(also, limits, detached)?;
        let call = CallArguments::of(entity, resource, demand, named, extras)?;
        match call.try_plain(slf, priority)? {
            Some(Attempt::Admitted(lease)) => Ok(Py::new(py, lease)?.into_any()),
            Some(Attempt::Denied(denial)) => Ok(Py::new(py, PyDenial::of_limiter(denial))?.into_any()),
            None => {
                let tried = PyLimiter::try_operation(slf, call.into_call(), priority);
                run(py, tried, slf.get().first_poll())
            }
        }
    }

    /// As `try_acquire`, in an event loop.
    #[pyo3(signature = (
        entity, resource, demand=None, /, *, also=None, limits=None, detached=None, priority=None, **named
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn try_acquire_async<'py>(
        slf: &Bound<'py, Self>,
        entity: &Bound<'py, PyString>,
        resource: &Bound<'py, PyString>,
        demand: Option<&Bound<'py, PyAny>>,
        also: Option<&Bound<'py, PyAny>>,
        limits: Option<LimitList>,
        detached: Option<&Bound<'py, PyAny>>,
        priority: Option<TextArgument>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Pending> {
        let priority = priority_of(slf.py(), priority.as_deref())?;
        let extras = CallExtras::of(also, limits, detached)?;
        let call = CallArguments::of(entity, resource, demand, named, extras)?.into_call();
        let tried = PyLimiter::try_operation(slf, call, priority);
        Ok(Pending::of("Limiter.try_acquire_async", tried, slf.get().first_poll()))
    }

    /// Checks a demand and keeps it for many calls: `d = limiter.demand(rpm=1, tpm=1500)`, then `limiter.acquire("user-1", "gpt-4", d)`.
    #[staticmethod]
    #[pyo3(signature = (demand=None, /, **named))]
    fn demand(
        py: Python<'_>,
        demand: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyDemand> {
        owned_demand(py, demand, named, &NoUnits).map(PyDemand)
    }

    /// Entities, stored limits, audit events and usage of the namespace.
    #[getter]
    fn catalog(slf: &Bound<'_, Self>) -> PyCatalog {
        PyCatalog::of(slf.clone().unbind(), slf.get().limiter.catalog().clone())
    }

    /// The name of the namespace.
    #[getter]
    fn namespace(&self) -> &str {
        self.limiter.catalog().namespace_name()
    }

    /// Where everything is kept, without a password.
    #[getter]
    fn store(&self) -> String {
        self.address.redacted()
    }

    /// How many callers of this process wait for buckets of the store.
    #[getter]
    fn waiting(&self) -> usize {
        self.limiter.waiting()
    }

    /// Who shares it: "process", "host" or "fleet".
    #[getter]
    fn reach(&self) -> &'static str {
        match self.limiter.catalog().backend().reach() {
            Reach::Process => "process",
            Reach::Host => "host",
            _ => "fleet",
        }
    }

    fn __repr__(&self) -> String {
        format!("<Limiter {:?} namespace={:?}>", self.store(), self.namespace())
    }

    /// Opens it again in the process that unpickles it. A password in the URL is in the pickle.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<LimiterPickle<'py>> {
        if self.is_memory() {
            let text = "a limiter in the memory of this process cannot be pickled, because the copy would limit apart from it; open it \
                        on a store that the processes share, such as \"shm:jobs\"";
            return Err(PyTypeError::new_err(text));
        }
        let settings = self.settings.bind(py).copy()?;
        Ok((py.get_type::<PyLimiter>().getattr("_restore")?, (self.address.with_password(), settings)))
    }

    /// Restores a pickled limiter.
    #[classmethod]
    fn _restore<'py>(
        class: &Bound<'py, PyType>,
        url: &str,
        settings: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        class.call((url,), Some(settings))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.settings)?;
        self.observer.as_ref().map_or(Ok(()), |observer| observer.traverse(&visit))
    }

    fn __clear__(&self) {
        if let Some(observer) = &self.observer {
            observer.clear();
        }
    }
}

async fn redeem(
    limiter: Limiter,
    token: String,
) -> Result<tollgate::LimiterLease<'static>, tollgate::limiter::TicketError> {
    limiter.redeem(&token).await.map(tollgate::LimiterLease::into_owned)
}

pairs! { PyLimiter, "Limiter":
    /// Returns the lease of a token that `Lease.into_token` made, in any process. Settle, commit or cancel it: it counts once, however many
    /// processes have the token. A lease that is dropped leaves the token as it was.
    ///
    /// ```python
    /// limiter.resume(token).settle(tpm=300)
    /// ```
    fn resume, resume_async (token, /) (slf, token: TextArgument) {
        let (limiter, owner) = (slf.get().limiter().clone(), slf.clone().unbind());
        operation(redeem(limiter, token.0), |py, lease| {
            Py::new(py, PyLease::of_limiter(lease.or_raise(py)?, owner, true))
        })
    }
}
