//! What the methods with the suffix `_async` return.

use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};
use std::task::{Context, Poll, Waker};
use tollgate_store::Mutex;

use super::thread::already_awaited;
use super::{FirstPoll, PendingOp};
use crate::hooks::awaiting;
use crate::observing::deliver;
use crate::warning::warn_from_drop;

/// Begins an operation, when it is first awaited.
pub(crate) type Begin = Box<dyn FnOnce(Python<'_>) -> PyResult<Begun> + Send>;

/// What came of beginning an operation.
pub(crate) enum Begun {
    /// It has ended already.
    Ended(Py<PyAny>),
    /// It is under way.
    UnderWay(PendingOp, FirstPoll),
}

/// An operation that begins when it is awaited. It can be awaited once: `await x`, or `async with x as lease` if it makes a lease. It
/// is a coroutine to `asyncio.create_task` and its like.
///
/// ```python
/// import asyncio
/// import tollgate as tg
///
/// async def main():
///     limits = tg.LimitSet([tg.resource("slots", 1)])
///     lease = await limits.acquire_async()
///     waiting = asyncio.create_task(limits.acquire_async())
///     await asyncio.sleep(0)
///     lease.commit()
///     (await waiting).commit()
///
/// asyncio.run(main())
/// ```
#[pyclass(frozen, name = "Pending", module = "tollgate", weakref)]
pub(crate) struct Pending {
    name: &'static str,
    state: Mutex<PendingState>,
}

struct PendingState {
    begin: Option<Begin>,
    /// What was begun and has not ended, until an event loop takes it.
    operation: Option<PendingOp>,
    /// Its number in the table of its event loop.
    pub(super) id: Option<u64>,
    /// The coroutine behind `send`, `throw` and `close`.
    driver: Option<Py<PyAny>>,
    /// Whether it is used by `async with`, and the lease that came of that.
    is_entered: bool,
    lease: Option<Py<PyAny>>,
}

impl Pending {
    pub(crate) fn new(name: &'static str, begin: Begin) -> Pending {
        let state = PendingState {
            begin: Some(begin),
            operation: None,
            id: None,
            driver: None,
            is_entered: false,
            lease: None,
        };
        Pending { name, state: Mutex::new(state) }
    }

    /// Returns an awaitable of an operation that was not polled yet.
    pub(crate) fn of(name: &'static str, operation: PendingOp, first: FirstPoll) -> Pending {
        Pending::new(name, Box::new(move |_| Ok(Begun::UnderWay(operation, first))))
    }

    /// Takes the operation, to be polled by an event loop.
    pub(super) fn take_operation(&self) -> Option<PendingOp> {
        self.state.lock().operation.take()
    }

    pub(super) fn set_id(&self, id: u64) {
        self.state.lock().id = Some(id);
    }

    pub(super) fn take_id(&self) -> Option<u64> {
        self.state.lock().id.take()
    }

    fn keep(&self, py: Python<'_>, value: &Py<PyAny>) {
        let mut state = self.state.lock();
        if state.is_entered {
            state.lease = Some(value.clone_ref(py));
        }
    }
}

/// Returns the generator that drives an operation from an event loop.
fn drive<'py>(slf: &Bound<'py, Pending>) -> PyResult<Bound<'py, PyAny>> {
    awaiting(slf.py(), intern!(slf.py(), "drive"))?.call1((slf,))
}

#[pymethods]
impl Pending {
    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        drive(slf)
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.get().state.lock().is_entered = true;
        slf.clone()
    }

    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        exc_type: Bound<'py, PyAny>,
        exc: Bound<'py, PyAny>,
        traceback: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lease = self.state.lock().lease.take();
        let lease = lease.ok_or_else(|| PyRuntimeError::new_err("the block was not entered"))?;
        lease.bind(py).call_method1(intern!(py, "__aexit__"), (exc_type, exc, traceback))
    }

    fn send<'py>(slf: &Bound<'py, Self>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().driver(slf)?.call_method1(intern!(slf.py(), "send"), (value,))
    }

    #[pyo3(signature = (*arguments))]
    fn throw<'py>(slf: &Bound<'py, Self>, arguments: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().driver(slf)?.call_method1(intern!(slf.py(), "throw"), arguments)
    }

    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (begin, driver) = {
            let mut state = slf.get().state.lock();
            (state.begin.take(), state.driver.take())
        };
        // Out of the lock: what it drops may run code of the caller.
        drop(begin);
        if let Some(driver) = driver {
            driver.bind(slf.py()).call_method0(intern!(slf.py(), "close"))?;
        }
        Ok(())
    }

    /// Begins the operation. Returns what came of it, or this object if it is under way.
    fn _begin<'py>(slf: &Bound<'py, Self>) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let begin = this.state.lock().begin.take().ok_or_else(already_awaited)?;
        let (mut operation, first) = match begin(py)? {
            Begun::Ended(value) => {
                this.keep(py, &value);
                return Ok(value);
            }
            Begun::UnderWay(operation, first) => (operation, first),
        };
        let mut poll = || operation.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let polled = if first == FirstPoll::Detached { py.detach(poll) } else { poll() };
        deliver(py);
        match polled {
            Poll::Ready(finish) => {
                let value = finish(py)?;
                this.keep(py, &value);
                Ok(value)
            }
            Poll::Pending => {
                this.state.lock().operation = Some(operation);
                Ok(slf.clone().into_any().unbind())
            }
        }
    }

    /// Notes what came of it, for the end of an `async with` block.
    fn _end(&self, py: Python<'_>, value: Py<PyAny>) -> Py<PyAny> {
        self.keep(py, &value);
        value
    }

    fn __repr__(&self) -> String {
        format!("<Pending {}>", self.name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector runs with all threads stopped; a lock that is held belongs to a thread that is inside.
        let Some(state) = self.state.try_lock() else { return Ok(()) };
        visit.call(&state.driver)?;
        visit.call(&state.lease)
    }

    fn __clear__(&self) {
        let mut state = self.state.lock();
        let dropped = (state.driver.take(), state.lease.take());
        drop(state);
        drop(dropped);
    }
}

impl Pending {
    fn driver<'py>(&self, slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(driver) = &self.state.lock().driver {
            return Ok(driver.bind(py).clone());
        }
        let driver = drive(slf)?;
        self.state.lock().driver = Some(driver.clone().unbind());
        Ok(driver)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.state.get_mut().begin.is_none() {
            return;
        }
        let text = std::ffi::CString::new(format!("{} was never awaited; it did nothing", self.name));
        if let Ok(text) = text {
            warn_from_drop(|py| py.get_type::<PyRuntimeWarning>(), &text);
        }
    }
}
