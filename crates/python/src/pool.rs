//! Pools: several sets to spread over, such as accounts or regions.

use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use tollgate::{AcquireError, Attempt, Demand, Lease, LimitPool, Limits, Priority, Spread};

use crate::amount::{shown, text};
use crate::demand::owned_demand;
use crate::denial::PyDenial;
use crate::error::{OrRaise, invalid};
use crate::lease::PyLease;
use crate::observing::deliver;
use crate::set::PyLimitSet;
use crate::set_settings::whole;
use crate::status::PySetStatus;
use crate::wait::pending::{Begun, Pending};
use crate::wait::thread::run;
use crate::wait::{FirstPoll, PendingOp, operation};
use crate::wait_for::{WaitFor, priority_of};

/// What the ways to spread are called in Python.
const SPREADS: [(Spread, &str); 3] =
    [(Spread::Soonest, "soonest"), (Spread::RoundRobin, "round_robin"), (Spread::Random, "random")];

/// Several limit sets to spread over: accounts, regions, keys. A demand is taken from one of them; `lease.config` says from which.
///
/// `spread` says which is tried first: "soonest" (the one that can admit the demand soonest), "round_robin", "random", or a function
/// from the tuple of sets to an index. The others are tried after it. If none admits the demand, `acquire` waits in the queues of all.
///
/// ```python
/// import tollgate as tg
///
/// blue = tg.LimitSet([tg.per_minute("rpm", 1)], config={"region": "blue"})
/// green = tg.LimitSet([tg.per_minute("rpm", 1)], config={"region": "green"})
/// pool = tg.LimitPool([blue, green])
/// regions = {pool.acquire(rpm=1).config["region"] for _ in range(2)}
/// assert regions == {"blue", "green"}
/// ```
#[pyclass(frozen, name = "LimitPool", module = "tollgate", weakref)]
pub(crate) struct PyLimitPool {
    pool: Arc<LimitPool>,
    sets: Py<PyTuple>,
    /// The function that chooses, in place of a spread of the library.
    choose: Option<Py<PyAny>>,
    spread: &'static str,
    /// All limits by name, to look up units.
    names: Limits,
    first: FirstPoll,
    is_plain: bool,
}

/// The function that makes a pickled pool, and what it is called with: the sets, the spread and the index of the worker.
type PickledPool<'py> = (Bound<'py, PyAny>, (Py<PyTuple>, Py<PyAny>, usize));

/// Acquires from a pool, in a future that owns it.
async fn acquire(
    pool: Arc<LimitPool>,
    demand: Demand,
    wait: WaitFor,
) -> Result<Lease<'static>, AcquireError> {
    let mut acquire = pool.acquire(&demand).priority(wait.priority);
    if let Some(timeout) = wait.timeout {
        acquire = acquire.timeout(timeout);
    }
    acquire.await.map(Lease::into_owned)
}

/// Tries to acquire from a pool, in a future that owns it.
async fn try_acquire(
    pool: Arc<LimitPool>,
    demand: Demand,
    priority: Priority,
) -> Result<Attempt<Lease<'static>>, AcquireError> {
    owned(pool.try_acquire(&demand).priority(priority).await)
}

fn owned(attempt: Result<Attempt<Lease<'_>>, AcquireError>) -> Result<Attempt<Lease<'static>>, AcquireError> {
    Ok(match attempt? {
        Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
        Attempt::Denied(denial) => Attempt::Denied(denial),
    })
}

/// Returns the limits of all sets, the first of each name.
fn names_of(py: Python<'_>, sets: &[Py<PyLimitSet>]) -> PyResult<Limits> {
    let mut names = Vec::new();
    for limit in sets.iter().flat_map(|set| set.get().names().iter()) {
        if !names.iter().any(|known: &tollgate::Limit| known.name() == limit.name()) {
            names.push(limit.clone());
        }
    }
    Limits::new(names).or_raise(py)
}

impl PyLimitPool {
    fn make(
        py: Python<'_>,
        sets: Vec<Py<PyLimitSet>>,
        spread: &Bound<'_, PyAny>,
        index: usize,
    ) -> PyResult<PyLimitPool> {
        let pool = LimitPool::new(sets.iter().map(|set| set.get().inner().clone()));
        let mut pool = pool.map_err(|error| invalid(py, error.to_string()))?;
        let (mut name, mut choose) = ("", None);
        if let Ok(spread) = spread.cast::<PyString>() {
            let given = text("spread", spread)?;
            let known = SPREADS.iter().find(|(_, known)| *known == given);
            let Some((spread, known)) = known else { return Err(bad_spread(spread)) };
            (pool, name) = (pool.spread(*spread), known);
        } else if spread.is_callable() {
            choose = Some(spread.clone().unbind());
        } else {
            return Err(bad_spread(spread));
        }
        let all_here = sets.iter().all(|set| set.get().first_poll() == FirstPoll::Attached);
        Ok(PyLimitPool {
            pool: Arc::new(pool.for_worker(index)),
            choose,
            spread: name,
            names: names_of(py, &sets)?,
            first: if all_here { FirstPoll::Attached } else { FirstPoll::Detached },
            is_plain: sets.iter().all(|set| set.get().is_plain()),
            sets: PyTuple::new(py, sets)?.unbind(),
        })
    }

    /// Returns the pool to take from: if a function chooses, one that begins where it says. It is called here, with the GIL.
    fn pool(&self, py: Python<'_>) -> PyResult<Arc<LimitPool>> {
        let Some(choose) = &self.choose else { return Ok(self.pool.clone()) };
        let place = choose.bind(py).call1((self.sets.bind(py),))?;
        let last = self.pool.len() as u64 - 1;
        let place = whole("the result of spread", &place, 0, last)? as usize;
        Ok(Arc::new(self.pool.for_worker(place)))
    }

    /// Returns the object of the set that a lease was taken from.
    fn leased(&self, py: Python<'_>, lease: Lease<'static>) -> PyResult<Py<PyAny>> {
        let config = ptr::from_ref(lease.set().config());
        for set in self.sets.bind(py).iter() {
            let set = set.cast::<PyLimitSet>()?;
            if ptr::eq(set.get().inner().config(), config) {
                return Ok(Py::new(py, PyLease::new(lease, set.clone().unbind()))?.into_any());
            }
        }
        Err(invalid(py, "the pool has lost a set"))
    }

    fn attempted(&self, py: Python<'_>, attempt: Attempt<Lease<'static>>) -> PyResult<Py<PyAny>> {
        match attempt {
            Attempt::Admitted(lease) => self.leased(py, lease),
            Attempt::Denied(denial) => Ok(Py::new(py, PyDenial::of_set(denial))?.into_any()),
        }
    }

    fn acquire_operation(slf: &Bound<'_, Self>, demand: Demand, wait: WaitFor) -> PyResult<PendingOp> {
        let (pool, this) = (slf.get().pool(slf.py())?, slf.clone().unbind());
        Ok(operation(acquire(pool, demand, wait), move |py, acquired| {
            this.get().leased(py, acquired.or_raise(py)?)
        }))
    }

    fn try_operation(slf: &Bound<'_, Self>, demand: Demand, priority: Priority) -> PyResult<PendingOp> {
        let (pool, this) = (slf.get().pool(slf.py())?, slf.clone().unbind());
        Ok(operation(try_acquire(pool, demand, priority), move |py, attempt| {
            this.get().attempted(py, attempt.or_raise(py)?)
        }))
    }

    fn peek_operation(slf: &Bound<'_, Self>) -> PendingOp {
        let pool = slf.get().pool.clone();
        let peeked = async move {
            let statuses = pool.peek().await;
            let now: Vec<_> = pool.sets().iter().map(|set| set.clock().now()).collect();
            statuses.map(|statuses| statuses.into_iter().zip(now).collect::<Vec<_>>())
        };
        operation(peeked, |py, statuses| {
            let statuses = statuses.or_raise(py)?;
            let statuses = statuses.iter().map(|(status, now)| PySetStatus::of(py, status, *now));
            Ok(PyTuple::new(py, statuses.collect::<PyResult<Vec<_>>>()?)?.unbind())
        })
    }

    fn later(
        slf: &Bound<'_, Self>,
        name: &'static str,
        begin: impl FnOnce(&Bound<'_, Self>) -> PyResult<PendingOp> + Send + 'static,
    ) -> Pending {
        let this = slf.clone().unbind();
        let begin = move |py: Python<'_>| {
            let slf = this.bind(py);
            Ok(Begun::UnderWay(begin(slf)?, slf.get().first))
        };
        Pending::new(name, Box::new(begin))
    }
}

fn bad_spread(spread: &Bound<'_, PyAny>) -> PyErr {
    let names = SPREADS.map(|(_, name)| format!("{name:?}")).join(", ");
    let text = format!("spread is {}, but must be {names} or a function of the sets", shown(spread));
    invalid(spread.py(), text)
}

#[pymethods]
impl PyLimitPool {
    #[new]
    #[pyo3(signature = (sets, *, spread=None))]
    fn new(sets: &Bound<'_, PyAny>, spread: Option<&Bound<'_, PyAny>>) -> PyResult<PyLimitPool> {
        let py = sets.py();
        let set_of = |item: PyResult<Bound<'_, PyAny>>| {
            let item = item?;
            let set = item.cast::<PyLimitSet>().map(|set| set.clone().unbind());
            set.map_err(|_| PyTypeError::new_err(format!("{} is not a LimitSet", shown(&item))))
        };
        let sets = sets.try_iter()?.map(set_of).collect::<PyResult<Vec<_>>>()?;
        let usual = PyString::new(py, "soonest").into_any();
        PyLimitPool::make(py, sets, spread.unwrap_or(&usual), 0)
    }

    /// Takes the demand from whichever set admits it now, else waits in the queues of all of them: until `timeout` (seconds or a
    /// `timedelta`) if there is one. Returns a `Lease`: `with pool.acquire(rpm=1, timeout=30) as lease: ...`.
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
        let demand = owned_demand(py, demand, named, &this.names)?;
        run(py, PyLimitPool::acquire_operation(slf, demand, wait)?, this.first)
    }

    /// As `acquire`, in an event loop: `async with pool.acquire_async(rpm=1) as lease: ...`.
    #[pyo3(signature = (demand=None, /, *, timeout=None, priority=None, **named))]
    fn acquire_async(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let wait = WaitFor::of(slf.py(), timeout, priority)?;
        let demand = owned_demand(slf.py(), demand, named, &slf.get().names)?;
        Ok(PyLimitPool::later(slf, "LimitPool.acquire_async", move |slf| {
            PyLimitPool::acquire_operation(slf, demand, wait)
        }))
    }

    /// Takes the demand from the first set that admits it now and returns a `Lease`, or the `Denial` with the shortest wait.
    #[pyo3(signature = (demand=None, /, *, priority=None, **named))]
    fn try_acquire(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let priority = priority_of(py, priority)?;
        let demand = owned_demand(py, demand, named, &this.names)?;
        if this.is_plain {
            let pool = this.pool(py)?;
            let attempt = owned(pool.try_acquire(&demand).priority(priority).wait());
            deliver(py);
            return this.attempted(py, attempt.or_raise(py)?);
        }
        run(py, PyLimitPool::try_operation(slf, demand, priority)?, this.first)
    }

    /// As `try_acquire`, in an event loop: `lease = await pool.try_acquire_async(rpm=1)`.
    #[pyo3(signature = (demand=None, /, *, priority=None, **named))]
    fn try_acquire_async(
        slf: &Bound<'_, Self>,
        demand: Option<&Bound<'_, PyAny>>,
        priority: Option<&str>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let priority = priority_of(slf.py(), priority)?;
        let demand = owned_demand(slf.py(), demand, named, &slf.get().names)?;
        Ok(PyLimitPool::later(slf, "LimitPool.try_acquire_async", move |slf| {
            PyLimitPool::try_operation(slf, demand, priority)
        }))
    }

    /// Returns how every set stands, in order: `pool.peek()[0]["rpm"].available`. Changes nothing.
    fn peek(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        run(slf.py(), PyLimitPool::peek_operation(slf), slf.get().first)
    }

    /// As `peek`, in an event loop.
    fn peek_async(slf: &Bound<'_, Self>) -> Pending {
        PyLimitPool::later(slf, "LimitPool.peek_async", |slf| Ok(PyLimitPool::peek_operation(slf)))
    }

    /// Returns a pool over the same sets whose turns begin at the set of this index, so that workers begin at different ones:
    /// `mine = pool.for_worker(3)`.
    fn for_worker(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<PyLimitPool> {
        let index = whole("index", index, 0, u32::MAX.into())? as usize;
        Ok(PyLimitPool {
            pool: Arc::new(self.pool.for_worker(index)),
            sets: self.sets.clone_ref(py),
            choose: self.choose.as_ref().map(|choose| choose.clone_ref(py)),
            names: self.names.clone(),
            ..*self
        })
    }

    /// The index of the worker that it is for; 0 if it is for none.
    #[getter]
    fn index(&self) -> usize {
        self.pool.index()
    }

    /// The sets, in order.
    #[getter]
    fn sets(&self, py: Python<'_>) -> Py<PyTuple> {
        self.sets.clone_ref(py)
    }

    /// Which set is tried first: the name of a rule, or the function that chooses.
    #[getter]
    fn spread(&self, py: Python<'_>) -> Py<PyAny> {
        match &self.choose {
            Some(choose) => choose.clone_ref(py),
            None => PyString::new(py, self.spread).into_any().unbind(),
        }
    }

    fn __len__(&self) -> usize {
        self.pool.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let sets = self.sets.bind(py);
        let place = if index < 0 { index.checked_add_unsigned(sets.len()) } else { Some(index) };
        let place = place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < sets.len());
        sets.get_item(place.ok_or_else(|| PyIndexError::new_err("the pool has no such set"))?)
    }

    fn __repr__(&self) -> String {
        let spread = if self.choose.is_some() { "a function" } else { self.spread };
        format!("<LimitPool of {} sets, {spread}>", self.pool.len())
    }

    /// A pool is pickled by its sets, which have to be in stores, and its function if it has one.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<PickledPool<'py>> {
        let restore = PyType::new::<PyLimitPool>(py).getattr("_restore")?;
        Ok((restore, (self.sets.clone_ref(py), self.spread(py), self.pool.index())))
    }

    /// Makes a pool that was pickled.
    #[staticmethod]
    fn _restore(
        py: Python<'_>,
        sets: Vec<Py<PyLimitSet>>,
        spread: &Bound<'_, PyAny>,
        index: usize,
    ) -> PyResult<PyLimitPool> {
        PyLimitPool::make(py, sets, spread, index)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.sets)?;
        visit.call(&self.choose)
    }
}
