//! Leases: what an admitted caller holds.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use pyo3::{PyTraverseError, PyVisit};
use tollgate::limiter::{LeaseEnd, TicketEnd};
use tollgate::{Demand, Lease, LimiterLease};
use tollgate_store::{Mutex, generation};

use crate::concurry::PySetAcquisition;
use crate::demand::{changes, owned_demand};
use crate::either_lease::{EitherLease, Ending, LeaseOwner};
use crate::error::{OrRaise, lease_ended, token_error};
use crate::input::TextArgument;
use crate::limiter::PyLimiter;
use crate::observing::{deliver, deliver_from_drop};
use crate::set::PyLimitSet;
use crate::wait::pending::{Begun, Pending};
use crate::wait::thread::{block_on, run};
use crate::wait::{FirstPoll, PendingOp, operation};
use crate::warning::warn_from_drop;

/// What an admitted caller holds, until it is settled, committed or cancelled; whatever happens, it counts once.
///
/// As a context manager it commits at the end of the block, and gives everything back if an exception leaves the block. A lease that is
/// dropped without an end frees its resources, and what was reserved stays charged. It belongs to the process that took it.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.per_day("tokens", 1_000), tg.resource("slots", 1)])
/// with limits.acquire(tokens=100) as lease:
///     lease.settle(tokens=40)
/// assert limits.peek()["tokens"].available == 960
/// ```
#[pyclass(frozen, name = "Lease", module = "tollgate", weakref)]
pub(crate) struct PyLease {
    slot: Mutex<Option<EitherLease>>,
    owner: LeaseOwner,
    process: u32,
    /// Whether a token made it: other processes may have the token, so that only an explicit end may end it.
    is_resumed: bool,
    /// Whether another call has it now, which may wait for its store.
    is_lent: AtomicBool,
}

impl PyLease {
    pub(crate) fn new(lease: Lease<'static>, set: Py<PyLimitSet>) -> PyLease {
        PyLease::held(EitherLease::Set(lease), LeaseOwner::Set(set), false)
    }

    pub(crate) fn of_limiter(
        lease: LimiterLease<'static>,
        limiter: Py<PyLimiter>,
        is_resumed: bool,
    ) -> PyLease {
        PyLease::held(EitherLease::Limiter(lease), LeaseOwner::Limiter(limiter), is_resumed)
    }

    fn held(lease: EitherLease, owner: LeaseOwner, is_resumed: bool) -> PyLease {
        let (slot, is_lent) = (Mutex::new(Some(lease)), AtomicBool::new(false));
        PyLease { slot, owner, process: generation(), is_resumed, is_lent }
    }

    /// Takes the lease to end it.
    fn take(&self, py: Python<'_>) -> PyResult<EitherLease> {
        self.check_process(py)?;
        self.slot.lock().take().ok_or_else(|| self.ended(py))
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.process == generation() {
            return Ok(());
        }
        Err(lease_ended(py, "the lease belongs to the process that took it; acquire one here"))
    }

    #[cold]
    fn ended(&self, py: Python<'_>) -> PyErr {
        if self.is_lent.load(Ordering::Relaxed) {
            return lease_ended(py, "another call is using the lease; let it return first");
        }
        lease_ended(py, "the lease has ended already")
    }

    /// Looks at the lease.
    fn with<T>(&self, py: Python<'_>, look: impl FnOnce(&mut EitherLease) -> T) -> PyResult<T> {
        self.check_process(py)?;
        match self.slot.lock().as_mut() {
            Some(lease) => Ok(look(lease)),
            None => Err(self.ended(py)),
        }
    }

    fn first_poll(&self) -> FirstPoll {
        self.owner.first_poll()
    }

    /// Ends the lease in this thread.
    fn end(&self, py: Python<'_>, end: impl FnOnce(EitherLease) -> Ending + Send) -> PyResult<()> {
        let lease = self.take(py)?;
        let reply = match self.first_poll() {
            FirstPoll::Attached => end(lease),
            FirstPoll::Detached => py.detach(|| end(lease)),
        };
        block_on(py, reply, self.first_poll())?.or_raise(py)
    }
}

/// Returns an awaitable that ends the lease.
fn end_later(
    slf: &Bound<'_, PyLease>,
    name: &'static str,
    end: impl FnOnce(EitherLease) -> Ending + Send + 'static,
) -> Pending {
    let this = slf.clone().unbind();
    Pending::new(
        name,
        Box::new(move |py| {
            let (lease, first) = (this.get().take(py)?, this.get().first_poll());
            let reply = if first == FirstPoll::Detached { py.detach(|| end(lease)) } else { end(lease) };
            let ended = operation(reply, |py, ended| ended.or_raise(py));
            Ok(Begun::UnderWay(ended, first))
        }),
    )
}

/// A lease that a call has taken out of its object, and puts back.
struct LentLease {
    owner: Py<PyLease>,
    lease: Option<EitherLease>,
}

impl LentLease {
    fn of(py: Python<'_>, owner: &Bound<'_, PyLease>) -> PyResult<LentLease> {
        let lease = owner.get().take(py)?;
        owner.get().is_lent.store(true, Ordering::Relaxed);
        Ok(LentLease { owner: owner.clone().unbind(), lease: Some(lease) })
    }
}

impl Drop for LentLease {
    fn drop(&mut self) {
        let owner = self.owner.get();
        *owner.slot.lock() = self.lease.take();
        owner.is_lent.store(false, Ordering::Relaxed);
    }
}

/// Takes more for a lease, all or nothing.
fn consume(py: Python<'_>, owner: &Bound<'_, PyLease>, demand: Demand) -> PyResult<PendingOp> {
    let mut lent = LentLease::of(py, owner)?;
    let consumed = async move {
        match &mut lent.lease {
            Some(lease) => lease.consume(&demand).await,
            None => Ok(()),
        }
    };
    Ok(operation(consumed, |py, consumed| consumed.or_raise(py)))
}

/// Keeps the resources of a lease for another term.
fn heartbeat(py: Python<'_>, owner: &Bound<'_, PyLease>) -> PyResult<PendingOp> {
    let lent = LentLease::of(py, owner)?;
    let beat = async move {
        match &lent.lease {
            Some(lease) => lease.heartbeat().await,
            None => Ok(false),
        }
    };
    Ok(operation(beat, |py, alive| alive.or_raise(py)))
}

/// Makes the token of a lease, which ends here.
fn into_token(py: Python<'_>, owner: &Bound<'_, PyLease>) -> PyResult<PendingOp> {
    let lease = owner.get().take(py)?;
    if let EitherLease::Set(_) = lease {
        *owner.get().slot.lock() = Some(lease);
        return Err(token_error(
            py,
            "the lease is of a set, which gives no tokens; acquire it from a Limiter",
        ));
    }
    let made = async move {
        match lease.into_token() {
            Some(made) => Some(made.await),
            None => None,
        }
    };
    Ok(operation(made, |py, token| token.transpose().or_raise(py)))
}

/// Ends a lease, and finds out whether it was ended before.
fn end_once(py: Python<'_>, owner: &Bound<'_, PyLease>, cancels: bool) -> PyResult<PendingOp> {
    let lease = owner.get().take(py)?;
    let ending = if cancels { LeaseEnd::Cancel } else { LeaseEnd::Commit };
    let ended = async move { lease.end_once(ending).await };
    Ok(operation(ended, |py, ended| ended.or_raise(py).map(|end| end == TicketEnd::Now)))
}

/// Returns an awaitable that begins an operation on the lease.
fn begin_later(
    slf: &Bound<'_, PyLease>,
    name: &'static str,
    begin: impl FnOnce(Python<'_>, &Bound<'_, PyLease>) -> PyResult<PendingOp> + Send + 'static,
) -> Pending {
    let this = slf.clone().unbind();
    let begin = move |py: Python<'_>| {
        let owner = this.bind(py);
        Ok(Begun::UnderWay(begin(py, owner)?, owner.get().first_poll()))
    };
    Pending::new(name, Box::new(begin))
}

#[pymethods]
impl PyLease {
    /// Ends the lease with what was really used. Less than taken is given back, more becomes debt; what is not named counts as it was
    /// taken or reported.
    #[pyo3(signature = (usage=None, /, **named))]
    fn settle(
        &self,
        py: Python<'_>,
        usage: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let usage = owned_demand(py, usage, named, &self.owner)?;
        self.end(py, move |lease| lease.settle(&usage))
    }

    /// As `settle`, in an event loop.
    #[pyo3(signature = (usage=None, /, **named))]
    fn settle_async(
        slf: &Bound<'_, Self>,
        usage: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let usage = owned_demand(slf.py(), usage, named, &slf.get().owner)?;
        Ok(end_later(slf, "Lease.settle_async", move |lease| lease.settle(&usage)))
    }

    /// Ends the lease with what was reported; what was not reported counts as it was taken.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, EitherLease::commit)
    }

    /// As `commit`, in an event loop.
    fn commit_async(slf: &Bound<'_, Self>) -> Pending {
        end_later(slf, "Lease.commit_async", EitherLease::commit)
    }

    /// Ends the lease as if nothing had been taken: for calls that were never made.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, EitherLease::cancel)
    }

    /// As `cancel`, in an event loop.
    fn cancel_async(slf: &Bound<'_, Self>) -> Pending {
        end_later(slf, "Lease.cancel_async", EitherLease::cancel)
    }

    /// Notes what was used, to count when the lease ends. The last report of a limit counts. `resource` is one of those that a limiter
    /// took `also`; by default it is that of the call.
    #[pyo3(signature = (usage=None, /, *, resource=None, **named))]
    fn report(
        &self,
        py: Python<'_>,
        usage: Option<&Bound<'_, PyAny>>,
        resource: Option<TextArgument>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let resource = resource.as_deref();
        let usage = owned_demand(py, usage, named, &self.owner)?;
        let reported = self.with(py, |lease| lease.report(resource, &usage));
        deliver(py);
        reported?.or_raise(py)
    }

    /// Adds to what was used, to count when the lease ends: `lease.adjust(tpm=+120)`. What goes beyond what was taken becomes debt.
    /// `resource` is as for `report`.
    #[pyo3(signature = (by=None, /, *, resource=None, **named))]
    fn adjust(
        &self,
        py: Python<'_>,
        by: Option<&Bound<'_, PyAny>>,
        resource: Option<TextArgument>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let changes = changes(py, by, named)?;
        let resource = resource.as_deref();
        let adjusted = self.with(py, |lease| lease.adjust(resource, &changes));
        deliver(py);
        adjusted?.or_raise(py)
    }

    /// Takes more from the set, all or nothing, now, and holds it like the rest. Raises `RateLimited` if it is denied.
    #[pyo3(signature = (demand=None, /, **named))]
    fn consume(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let (py, first) = (slf.py(), slf.get().first_poll());
        let demand = owned_demand(py, demand, named, &slf.get().owner)?;
        run(py, consume(py, slf, demand)?, first).map(drop)
    }

    /// As `consume`, in an event loop.
    #[pyo3(signature = (demand=None, /, **named))]
    fn consume_async(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let demand = owned_demand(slf.py(), demand, named, &slf.get().owner)?;
        Ok(begin_later(slf, "Lease.consume_async", |py, owner| consume(py, owner, demand)))
    }

    /// Keeps the resources for another term. Returns false if they had expired: they may be another holder's now. A set in a
    /// store sends heartbeats by itself.
    fn heartbeat(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, first) = (slf.py(), slf.get().first_poll());
        run(py, heartbeat(py, slf)?, first)
    }

    /// As `heartbeat`, in an event loop.
    fn heartbeat_async(slf: &Bound<'_, Self>) -> Pending {
        begin_later(slf, "Lease.heartbeat_async", heartbeat)
    }

    /// Hands the lease on as text: any process that has the token can end it, once, with `limiter.resume(token)`. Here it has ended; what
    /// it took stays charged until then. Only leases of a limiter have tokens, and those that hold resources must have been acquired
    /// `detached`.
    ///
    /// ```python
    /// import tollgate as tg
    ///
    /// limiter = tg.Limiter("memory")
    /// limiter.catalog.set_limits([tg.per_hour("rpm", 50)])
    /// token = limiter.acquire("user-1", "gpt-4", {"rpm": 1}).into_token()
    /// limiter.resume(token).commit()
    /// ```
    fn into_token(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, first) = (slf.py(), slf.get().first_poll());
        run(py, into_token(py, slf)?, first)
    }

    /// As `into_token`, in an event loop.
    fn into_token_async(slf: &Bound<'_, Self>) -> Pending {
        begin_later(slf, "Lease.into_token_async", into_token)
    }

    /// Ends a lease that a token made, and returns whether it was ended now: false if another process was first, and then nothing is
    /// changed. `cancel=True` ends it as if nothing had been taken.
    #[pyo3(signature = (*, cancel=false))]
    fn end_once(slf: &Bound<'_, Self>, cancel: bool) -> PyResult<Py<PyAny>> {
        let (py, first) = (slf.py(), slf.get().first_poll());
        run(py, end_once(py, slf, cancel)?, first)
    }

    /// As `end_once`, in an event loop.
    #[pyo3(signature = (*, cancel=false))]
    fn end_once_async(slf: &Bound<'_, Self>, cancel: bool) -> Pending {
        begin_later(slf, "Lease.end_once_async", move |py, owner| end_once(py, owner, cancel))
    }

    /// The set that it was taken from; `None` for a lease of a limiter.
    #[getter]
    fn set(&self, py: Python<'_>) -> Option<Py<PyLimitSet>> {
        match &self.owner {
            LeaseOwner::Set(set) => Some(set.clone_ref(py)),
            LeaseOwner::Limiter(_) => None,
        }
    }

    /// The limiter that it was taken from; `None` for a lease of a set.
    #[getter]
    fn limiter(&self, py: Python<'_>) -> Option<Py<PyLimiter>> {
        match &self.owner {
            LeaseOwner::Set(_) => None,
            LeaseOwner::Limiter(limiter) => Some(limiter.clone_ref(py)),
        }
    }

    /// The entity of the call; `None` for a lease of a set, and where nothing was taken because the store was unavailable.
    #[getter]
    fn entity(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |lease| lease.called().map(|(entity, _)| entity.to_owned()))
    }

    /// The resource of the call; `None` as for `entity`.
    #[getter]
    fn resource(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |lease| lease.called().map(|(_, resource)| resource.to_owned()))
    }

    /// A copy of the config of the set, such as the account or region to use.
    #[getter]
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.owner.config_copy(py)
    }

    /// How many seconds the caller waited for it; `None` if it did not.
    #[getter]
    fn waited(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.with(py, |lease| lease.waited().map(|waited| waited.as_secs_f64()))
    }

    /// What was taken, by the name of the limit.
    #[getter]
    fn reserved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.amounts(py, |lease, name| lease.reserved(name))
    }

    /// What was reported, by the name of the limit.
    #[getter]
    fn reported<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.amounts(py, |lease, name| lease.reported(name))
    }

    /// The names of limits in shadow mode that would have denied the call, and of soft limits that it passed.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |lease| lease.warnings().iter().map(|name| name.as_str().to_owned()).collect())
    }

    /// Whether it limits less than it should, because the store was unavailable.
    #[getter]
    fn degraded(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |lease| lease.is_degraded())
    }

    /// Whether its resources are known to be lost: it was silent for too long.
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |lease| lease.lost())
    }

    /// Whether it has ended.
    #[getter]
    fn ended_(&self) -> bool {
        self.slot.lock().is_none() && !self.is_lent.load(Ordering::Relaxed)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyType>>,
        exc: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (exc, traceback);
        match (self.has_ended(), exc_type.is_some()) {
            (true, _) => Ok(()),
            (false, false) => self.commit(py),
            // The caller's exception counts, not that the lease could not be given back: it expires.
            (false, true) => {
                give_back_lease(self);
                Ok(())
            }
        }
    }

    fn __aenter__(slf: Bound<'_, Self>) -> Pending {
        let this = slf.into_any().unbind();
        Pending::new("Lease.__aenter__", Box::new(move |_| Ok(Begun::Ended(this))))
    }

    fn __aexit__(
        slf: &Bound<'_, Self>,
        exc_type: Option<&Bound<'_, PyType>>,
        exc: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> Pending {
        let _ = (exc, traceback);
        if slf.get().has_ended() {
            return Pending::new("Lease.__aexit__", Box::new(|py| Ok(Begun::Ended(py.None()))));
        }
        if exc_type.is_some() {
            give_back_lease(slf.get());
            return Pending::new("Lease.__aexit__", Box::new(|py| Ok(Begun::Ended(py.None()))));
        }
        end_later(slf, "Lease.__aexit__", EitherLease::commit)
    }

    fn __reduce__(&self) -> PyResult<()> {
        let text = "a lease belongs to the process that took it and cannot be pickled; pass the set, and acquire there";
        Err(pyo3::exceptions::PyTypeError::new_err(text))
    }

    fn __repr__(&self) -> String {
        match &*self.slot.lock() {
            Some(lease) => {
                let names = lease.names().into_iter();
                let taken = names.filter_map(|name| Some(format!("{name}={}", lease.reserved(&name)?)));
                let whose = lease.called().map(|(entity, resource)| format!("{entity} on {resource}: "));
                let taken = taken.collect::<Vec<_>>().join(", ");
                format!("<Lease {}{taken}>", whose.unwrap_or_default())
            }
            None => "<Lease ended>".into(),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.owner {
            LeaseOwner::Set(set) => visit.call(set),
            LeaseOwner::Limiter(limiter) => visit.call(limiter),
        }
    }
}

impl PyLease {
    fn has_ended(&self) -> bool {
        self.process != generation() || self.ended_()
    }

    fn amounts<'py>(
        &self,
        py: Python<'py>,
        amount: impl Fn(&EitherLease, &str) -> Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let amounts: Vec<(String, u64)> = self.with(py, |lease| {
            let names = lease.names().into_iter();
            names.filter_map(|name| amount(lease, &name).map(|amount| (name, amount))).collect()
        })?;
        let dict = PyDict::new(py);
        for (name, amount) in amounts {
            dict.set_item(name, amount)?;
        }
        Ok(dict)
    }
}

/// Gives back all that a lease holds, without waiting for its store.
fn give_back_lease(lease: &PyLease) {
    let held = lease.slot.lock().take();
    if let Some(held) = held {
        // The reply has sent what it has to send; the answer is of no use here.
        drop(held.cancel());
        deliver_from_drop();
    }
}

/// Gives back what a task was granted that does not want it any more: all of a lease. Other values hold nothing.
pub(crate) fn give_back(value: &Bound<'_, PyAny>) {
    // What a token made was not granted by this call: the token can be used again.
    if let Ok(lease) = value.cast::<PyLease>()
        && !lease.get().is_resumed
    {
        give_back_lease(lease.get());
    } else if let Ok(acquisition) = value.cast::<PySetAcquisition>() {
        acquisition.get().cancel();
    }
}

impl Drop for PyLease {
    fn drop(&mut self) {
        let Some(lease) = self.slot.get_mut().take() else { return };
        let warns = self.process == generation() && !self.is_resumed && self.owner.warns_of_drop(&lease);
        drop(lease);
        deliver_from_drop();
        if !warns {
            return;
        }
        let text = c"a lease was dropped without an end; settle it, or use it in a with block";
        warn_from_drop(|py| py.get_type::<PyResourceWarning>(), text);
    }
}
