//! Waiting in an event loop: no thread and no runtime, one descriptor for each loop.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tollgate_store::Mutex;

use super::pending::Pending;
use super::wake_fd::{WakeFd, WakeReason};
use super::{Finish, PendingOp};
use crate::lease::give_back;
use crate::observing::deliver;

/// How often a thread that watches a descriptor looks whether its loop is still there.
const WATCH_CHECK: Duration = Duration::from_secs(1);

/// The operations that the tasks of one event loop wait for. The loop watches its descriptor and calls `drain`.
#[pyclass(frozen, name = "LoopWaits", module = "tollgate._core", weakref)]
pub(crate) struct LoopWaits {
    ready: Arc<ReadyList>,
    waiting: Mutex<HashMap<u64, LoopWait>>,
    next_id: AtomicU64,
}

/// One operation, and the future of the loop that its task awaits.
struct LoopWait {
    operation: PendingOp,
    future: Py<PyAny>,
}

/// The numbers of operations that can go on. Wakers need no GIL.
struct ReadyList {
    ids: Mutex<Vec<u64>>,
    fd: WakeFd,
}

/// Calls `schedule` with `drain` whenever the descriptor becomes readable, until the waits are dropped.
fn watch(ready: &Arc<ReadyList>, waits: Py<PyAny>, schedule: Py<PyAny>) {
    let ready = Arc::downgrade(ready);
    std::thread::spawn(move || {
        while let Some(list) = ready.upgrade() {
            if list.fd.wait(Some(WATCH_CHECK)) != WakeReason::Notified {
                continue;
            }
            let scheduled = Python::try_attach(|py| {
                let waits = waits.bind(py).call0()?;
                if waits.is_none() {
                    return Ok(false);
                }
                // A loop that was closed has no tasks that would miss it.
                Ok::<_, PyErr>(schedule.bind(py).call1((waits.getattr("drain")?,)).is_ok())
            });
            if !matches!(scheduled, Some(Ok(true))) {
                return;
            }
        }
    });
}

struct ReadyWaker {
    id: u64,
    ready: Arc<ReadyList>,
}

impl Wake for ReadyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.ids.lock().push(self.id);
        self.ready.fd.notify();
    }
}

#[pymethods]
impl LoopWaits {
    #[new]
    fn new() -> PyResult<LoopWaits> {
        let ready = Arc::new(ReadyList { ids: Mutex::new(Vec::new()), fd: WakeFd::new()? });
        Ok(LoopWaits { ready, waiting: Mutex::new(HashMap::new()), next_id: AtomicU64::new(0) })
    }

    /// The descriptor that is readable when `drain` has something to do.
    fn fileno(&self) -> RawFd {
        self.ready.fd.raw()
    }

    /// Calls `schedule` with `drain` once for each burst of notifications, from a thread: for loops that watch no descriptors.
    fn call_instead(slf: &Bound<'_, Self>, schedule: Py<PyAny>) -> PyResult<()> {
        let weak = slf.py().import("weakref")?.call_method1("ref", (slf,))?;
        watch(&slf.get().ready, weak.unbind(), schedule);
        Ok(())
    }

    /// Waits for what `pending` has begun, and then sets the result of `future`.
    fn add(&self, py: Python<'_>, pending: &Bound<'_, Pending>, future: Py<PyAny>) -> PyResult<()> {
        let Some(operation) = pending.get().take_operation() else { return Ok(()) };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        pending.get().set_id(id);
        self.poll(py, id, LoopWait { operation, future })
    }

    /// Stops waiting for what `pending` has begun: it is cancelled, and what it was granted meanwhile is given back.
    fn remove(
        &self,
        py: Python<'_>,
        pending: &Bound<'_, Pending>,
        future: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let entry = pending.get().take_id().and_then(|id| self.waiting.lock().remove(&id));
        // Out of the lock: leaving a queue may wake others.
        drop(entry);
        let is_done: bool = future.call_method0(intern!(py, "done"))?.extract()?;
        if is_done
            && !future.call_method0(intern!(py, "cancelled"))?.extract::<bool>()?
            && future.call_method0(intern!(py, "exception"))?.is_none()
        {
            give_back(&future.call_method0(intern!(py, "result"))?);
        }
        Ok(())
    }

    /// Goes on with all operations that can, and sets the results of those that have ended.
    fn drain(&self, py: Python<'_>) {
        self.ready.fd.clear();
        let ids = std::mem::take(&mut *self.ready.ids.lock());
        for id in ids {
            let Some(entry) = self.waiting.lock().remove(&id) else { continue };
            // One that fails must not keep the others from their results.
            if let Err(error) = self.poll(py, id, entry) {
                error.write_unraisable(py, None);
            }
        }
    }

    /// Cancels all operations: the loop was closed, so that no task will ever go on.
    fn close(&self) {
        let dropped = std::mem::take(&mut *self.waiting.lock());
        // Out of the lock: leaving a queue may wake others.
        drop(dropped);
    }

    /// How many operations are waited for.
    fn __len__(&self) -> usize {
        self.waiting.lock().len()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector runs with all threads stopped; a lock that is held belongs to a thread that is inside.
        let Some(waiting) = self.waiting.try_lock() else { return Ok(()) };
        waiting.values().try_for_each(|entry| visit.call(&entry.future))
    }

    fn __clear__(&self) {
        self.close();
    }
}

impl LoopWaits {
    fn poll(&self, py: Python<'_>, id: u64, mut entry: LoopWait) -> PyResult<()> {
        let waker = Waker::from(Arc::new(ReadyWaker { id, ready: self.ready.clone() }));
        let polled = entry.operation.as_mut().poll(&mut Context::from_waker(&waker));
        deliver(py);
        match polled {
            Poll::Ready(finish) => resolve(py, finish, entry.future.bind(py)),
            Poll::Pending => {
                self.waiting.lock().insert(id, entry);
                Ok(())
            }
        }
    }
}

/// Sets the result of a future, unless its task was cancelled meanwhile: then what was granted is given back.
fn resolve(py: Python<'_>, finish: Finish, future: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_done: bool = future.call_method0(intern!(py, "done"))?.extract()?;
    match (finish(py), is_done) {
        (Ok(value), true) => give_back(value.bind(py)),
        (Err(_), true) => {}
        (Ok(value), false) => drop(future.call_method1(intern!(py, "set_result"), (value,))?),
        (Err(error), false) => {
            drop(future.call_method1(intern!(py, "set_exception"), (error.into_value(py),))?);
        }
    }
    Ok(())
}
