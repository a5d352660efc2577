//! Waiting for the library's futures: in a thread, or in an event loop.

pub(crate) mod event_loop;
pub(crate) mod pending;
pub(crate) mod thread;
mod wake_fd;

use std::future::Future;
use std::pin::Pin;

use pyo3::BoundObject;
use pyo3::prelude::*;

/// Makes the value that a caller gets, with the GIL, when an operation has ended.
pub(crate) type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// An operation under way. Dropping it cancels it.
pub(crate) type PendingOp = Pin<Box<dyn Future<Output = Finish> + Send>>;

/// Makes an operation of a future and of what becomes of its output.
pub(crate) fn operation<T, F, V>(future: impl Future<Output = T> + Send + 'static, finish: F) -> PendingOp
where
    T: Send + 'static,
    F: FnOnce(Python<'_>, T) -> PyResult<V> + Send + 'static,
    V: for<'py> IntoPyObject<'py>,
{
    Box::pin(async move {
        let output = future.await;
        let finish: Finish = Box::new(move |py| {
            let value = finish(py, output)?;
            // The unit is an empty tuple to PyO3, but for what functions return.
            if size_of::<V>() == 0 {
                return Ok(py.None());
            }
            Ok(value.into_pyobject(py).map_err(Into::into)?.into_any().unbind())
        });
        finish
    })
}

/// What happens to the GIL while a future is polled for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPoll {
    /// It is kept: the future is of memory of this process, and takes well below a microsecond.
    Attached,
    /// It is released: the future may write to a file or wait for a lock.
    Detached,
}
