//! The extension module `tollgate._core`: what the Python package `tollgate` is made of.
//!
//! A class here wraps a type of the library of the same name; nothing is decided here. What a caller may have to wait for has two
//! methods: `x` waits in the thread ([`wait::thread`]), `x_async` returns an awaitable ([`wait::event_loop`]). Both poll the library's
//! future and are notified by an eventfd, so that a waiter costs no thread, and a release needs no GIL.

mod amount;
mod batch;
mod catalog;
mod clock;
mod command;
mod concurry;
mod demand;
mod denial;
mod either_lease;
mod error;
mod hooks;
mod input;
mod lease;
mod limit;
mod limiter;
mod logging;
mod observing;
mod pairs;
mod pool;
mod provider;
mod set;
mod set_settings;
mod status;
mod stores;
mod wait;
mod wait_for;
mod warning;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_core")]
mod core_module {
    #[pymodule_export]
    use crate::batch::{BatchCall, BatchRun};
    #[pymodule_export]
    use crate::catalog::{PyCatalog, PyNamespaces};
    #[pymodule_export]
    use crate::clock::PyManualClock;
    #[pymodule_export]
    use crate::command::_run_command;
    #[pymodule_export]
    use crate::concurry::{PyAcquisition, PySetAcquisition, PySharedLimits};
    #[pymodule_export]
    use crate::demand::PyDemand;
    #[pymodule_export]
    use crate::denial::PyDenial;
    #[pymodule_export]
    use crate::hooks::_set_hooks;
    #[pymodule_export]
    use crate::lease::PyLease;
    #[pymodule_export]
    use crate::limit::{
        PyLimit, PyUnit, calls, fixed_window, per_day, per_hour, per_minute, per_second, quota, rate,
        resource, sliding_window,
    };
    #[pymodule_export]
    use crate::limiter::PyLimiter;
    #[pymodule_export]
    use crate::observing::PyEvent;
    #[pymodule_export]
    use crate::pool::PyLimitPool;
    #[pymodule_export]
    use crate::provider::{
        PyEstimate, PyEstimator, PyHint, PyLimitReading, PyTokens, ReplyReader, estimate_tokens, read_reply,
    };
    #[pymodule_export]
    use crate::set::PyLimitSet;
    #[pymodule_export]
    use crate::status::{PySetStatus, PyStatus};
    #[pymodule_export]
    use crate::stores::_remove_anonymous_stores;
    #[pymodule_export]
    use crate::wait::event_loop::LoopWaits;
    #[pymodule_export]
    use crate::wait::pending::Pending;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
