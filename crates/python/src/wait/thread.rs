//! Waiting in a thread: without the GIL, and until a signal arrives.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use tollgate_store::{generation, poll_blocking};

use super::wake_fd::{WakeFd, WakeReason};
use super::{Finish, FirstPoll, PendingOp};
use crate::error::would_block_loop;
use crate::hooks::awaiting;
use crate::observing::deliver;

/// How long the main thread sleeps at most before it looks for signals by itself: one that arrives just before the sleep begins does
/// not end it.
const SIGNAL_CHECK: Duration = Duration::from_millis(500);

thread_local! {
    /// The descriptor that this thread waits on, and the process that opened it: a forked child has its own.
    static WAKE_FD: RefCell<Option<(u32, Arc<WakeFd>)>> = const { RefCell::new(None) };
}

fn wake_fd() -> PyResult<Arc<WakeFd>> {
    WAKE_FD.with_borrow_mut(|slot| {
        if let Some((process, fd)) = slot
            && *process == generation()
            // Another operation of this thread may wait below this one, if a signal handler began this.
            && Arc::strong_count(fd) == 1
        {
            return Ok(fd.clone());
        }
        let fd = Arc::new(WakeFd::new()?);
        *slot = Some((generation(), fd.clone()));
        Ok(fd)
    })
}

/// Runs an operation to its end in this thread.
///
/// # Errors
///
/// What the operation raises, what a signal handler raises, and `WouldBlockLoop` if it has to wait and the thread runs an
/// event loop. Then the operation is cancelled.
pub(crate) fn run(py: Python<'_>, operation: PendingOp, first: FirstPoll) -> PyResult<Py<PyAny>> {
    let finish: Finish = block_on(py, operation, first)?;
    finish(py)
}

/// Waits for a future in this thread.
///
/// # Errors
///
/// What a signal handler raises, and `WouldBlockLoop`; see [`run`]. The future is dropped then.
pub(crate) fn block_on<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = T> + Send,
    first: FirstPoll,
) -> PyResult<T> {
    let output = wait_for(py, future, first, check_no_loop);
    deliver(py);
    output
}

/// Waits for a future in this thread, also if that stops the event loop that runs in it.
///
/// # Errors
///
/// What a signal handler raises. The future is dropped then.
pub(crate) fn block_on_in_loop<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = T> + Send,
    first: FirstPoll,
) -> PyResult<T> {
    let output = wait_for(py, future, first, |_| Ok(()));
    deliver(py);
    output
}

fn wait_for<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = T> + Send,
    first: FirstPoll,
    check_may_wait: impl FnOnce(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let mut future = pin!(future);
    if first == FirstPoll::Attached
        && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    {
        return Ok(output);
    }
    if first == FirstPoll::Detached
        && let Poll::Ready(output) = py.detach(|| poll_once(future.as_mut(), Waker::noop()))
    {
        return Ok(output);
    }
    check_may_wait(py)?;
    let fd = wake_fd()?;
    let waker = Waker::from(fd.clone());
    let is_main = is_main_thread(py)?;
    let most = is_main.then_some(SIGNAL_CHECK);
    loop {
        let output = py.detach(|| {
            loop {
                if let Poll::Ready(output) = poll_once(future.as_mut(), &waker) {
                    return Some(output);
                }
                if fd.wait(most) == WakeReason::Interrupted && is_main {
                    return None;
                }
            }
        });
        match output {
            Some(output) => return Ok(output),
            None => py.check_signals()?,
        }
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    poll_blocking(future, &mut Context::from_waker(waker))
}

/// Python runs signal handlers in its main thread only.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    awaiting(py, intern!(py, "is_main_thread"))?.call0()?.extract()
}

/// Refuses to stop the event loop that runs in this thread.
fn check_no_loop(py: Python<'_>) -> PyResult<()> {
    if awaiting(py, intern!(py, "runs_event_loop"))?.call0()?.extract::<bool>()? {
        let text = "this would stop the event loop that runs in this thread; await the method with the suffix _async";
        return Err(would_block_loop(py, text));
    }
    Ok(())
}

/// Returns the error of an operation that was begun twice.
pub(crate) fn already_awaited() -> PyErr {
    PyRuntimeError::new_err("cannot reuse what was awaited already; call the method again")
}
