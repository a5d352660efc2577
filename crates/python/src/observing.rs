//! What is reported to observers and to `logging`.
//!
//! The library reports while it holds the caller up, in a thread that may have no GIL, and perhaps with a lock that a thread with the
//! GIL waits for. So nothing of Python is called there: events are queued, and are delivered with the GIL and no lock, before the call
//! that caused them returns. Those of background work are delivered with the next call.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tollgate::{Event, Observer};
use tollgate_store::{Mutex, PerProcess, generation};

use crate::amount::shown;
use crate::hooks::observing;

/// How many events are kept; the oldest are dropped.
const KEPT_MAX: usize = 10_000;

/// Something that happened to a set: `event.kind` says what.
///
/// ```python
/// import tollgate as tg
///
/// limits = tg.LimitSet([tg.per_minute("rpm", 1)], observer=lambda event: print(event.kind, event.limit))
/// limits.try_acquire(rpm=1)  # allowed None
/// limits.try_acquire(rpm=1)  # denied rpm
/// ```
#[pyclass(frozen, name = "Event", module = "tollgate", get_all)]
pub(crate) struct PyEvent {
    /// "allowed", "denied", "waited", "refunded", "over_used", "unknown_limit", "expired_lease", "would_deny",
    /// "soft_limit_passed", "degraded" or "cooldown".
    kind: &'static str,
    /// The name of the limit; `None` where there is none.
    limit: Option<String>,
    /// How much was refunded or over-used.
    amount: Option<u64>,
    /// How long the caller waited, or how long a cooldown lasts.
    seconds: Option<f64>,
    /// The name of the set; `None` if it has none.
    set: Option<String>,
}

/// All kinds of events.
const KINDS: [&str; 11] = [
    "allowed",
    "denied",
    "waited",
    "refunded",
    "over_used",
    "unknown_limit",
    "expired_lease",
    "would_deny",
    "soft_limit_passed",
    "degraded",
    "cooldown",
];

#[pymethods]
impl PyEvent {
    fn __repr__(&self) -> String {
        let limit = self.limit.as_ref().map(|limit| format!(" {limit}")).unwrap_or_default();
        let amount = self.amount.map(|amount| format!(" {amount}")).unwrap_or_default();
        let seconds = self.seconds.map(|seconds| format!(" {seconds} s")).unwrap_or_default();
        format!("<Event {}{limit}{amount}{seconds}>", self.kind)
    }
}

impl PyEvent {
    /// Converts an event; `None` for one that this version has no word for.
    fn of(event: &Event<'_>, set: Option<String>) -> Option<PyEvent> {
        let mut made = PyEvent { kind: "", limit: None, amount: None, seconds: None, set };
        made.kind = match event {
            Event::Allowed => "allowed",
            Event::Denied { limit } => {
                made.limit = limit.map(|limit| limit.to_string());
                "denied"
            }
            Event::Waited { limit, duration } => {
                made.limit = limit.map(|limit| limit.to_string());
                made.seconds = Some(duration.as_secs_f64());
                "waited"
            }
            Event::Refunded { limit, amount } => {
                (made.limit, made.amount) = (Some(limit.to_string()), Some(*amount));
                "refunded"
            }
            Event::OverUsed { limit, amount } => {
                (made.limit, made.amount) = (Some(limit.to_string()), Some(*amount));
                "over_used"
            }
            Event::UnknownLimit { name } => {
                made.limit = Some((*name).to_owned());
                "unknown_limit"
            }
            Event::ExpiredLease => "expired_lease",
            Event::WouldDeny { limit } => {
                made.limit = Some(limit.to_string());
                "would_deny"
            }
            Event::SoftLimitPassed { limit } => {
                made.limit = Some(limit.to_string());
                "soft_limit_passed"
            }
            Event::Degraded => "degraded",
            Event::Cooldown { duration } => {
                made.seconds = Some(duration.as_secs_f64());
                "cooldown"
            }
            _ => return None,
        };
        Some(made)
    }
}

/// The observer of a set. The set owns it for Python's collector, and may let go of it.
pub(crate) struct ObserverTarget {
    observer: Mutex<Option<Py<PyAny>>>,
    name: Mutex<Option<String>>,
}

impl ObserverTarget {
    /// Returns the target that calls `observer`.
    ///
    /// # Errors
    ///
    /// `TypeError` for what can neither be called nor has a method for an event.
    pub(crate) fn of(observer: &Bound<'_, PyAny>) -> PyResult<ObserverTarget> {
        let mut listens = observer.is_callable();
        for kind in KINDS {
            listens = listens || observer.hasattr(format!("on_{kind}"))?;
        }
        if !listens {
            let text = format!(
                "observer is {}, but must be a function of an event, or an object with methods such as on_denied",
                shown(observer)
            );
            return Err(PyTypeError::new_err(text));
        }
        let observer = Mutex::new(Some(observer.clone().unbind()));
        Ok(ObserverTarget { observer, name: Mutex::new(None) })
    }

    pub(crate) fn set_name(&self, name: Option<String>) {
        *self.name.lock() = name;
    }

    /// Returns what the library reports to.
    pub(crate) fn watch(self: &Arc<Self>) -> impl Observer + use<> {
        let target = self.clone();
        move |event: &Event<'_>| {
            // What an observer itself does is not reported to it: that would never end.
            if DELIVERING.get() {
                return;
            }
            let set = target.name.lock().clone();
            if let Some(event) = PyEvent::of(event, set) {
                push(Report::Event(target.clone(), event));
            }
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector runs with all threads stopped; a lock that is held belongs to a thread that is inside.
        self.observer.try_lock().map_or(Ok(()), |observer| visit.call(&*observer))
    }

    pub(crate) fn clear(&self) {
        let dropped = self.observer.lock().take();
        // Out of the lock: it may run code of the caller.
        drop(dropped);
    }
}

/// What waits to be delivered.
enum Report {
    Event(Arc<ObserverTarget>, PyEvent),
    /// A warning or an error for `logging`, with its level.
    Log(u8, String),
}

thread_local! {
    /// Whether this thread is calling observers.
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Whether anything waits to be delivered.
static WAITING: AtomicBool = AtomicBool::new(false);

fn queue() -> &'static Mutex<VecDeque<Report>> {
    static QUEUE: OnceLock<PerProcess<Mutex<VecDeque<Report>>>> = OnceLock::new();
    let process = generation().into();
    QUEUE.get_or_init(|| PerProcess::new(process)).get(process)
}

fn push(report: Report) {
    let oldest = {
        let mut queue = queue().lock();
        queue.push_back(report);
        WAITING.store(true, Ordering::Release);
        if queue.len() > KEPT_MAX { queue.pop_front() } else { None }
    };
    // Out of the lock; without the GIL, Python is handed what it has to free.
    drop(oldest);
}

/// Queues a warning for `logging`. The level is Python's.
pub(crate) fn log(level: u8, text: String) {
    push(Report::Log(level, text));
}

/// Calls the observers of what has happened. Costs next to nothing if nothing has.
#[inline]
pub(crate) fn deliver(py: Python<'_>) {
    if WAITING.load(Ordering::Relaxed) {
        deliver_all(py);
    }
}

/// As [`deliver`], where an exception may be on its way.
pub(crate) fn deliver_from_drop() {
    if !WAITING.load(Ordering::Relaxed) {
        return;
    }
    let _ = Python::try_attach(|py| {
        let raised = PyErr::take(py);
        deliver_all(py);
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}

/// Marks the thread as one that calls observers, until it is dropped.
struct Delivering;

impl Drop for Delivering {
    fn drop(&mut self) {
        DELIVERING.set(false);
    }
}

#[cold]
fn deliver_all(py: Python<'_>) {
    if DELIVERING.replace(true) {
        return;
    }
    let _delivering = Delivering;
    let mut is_interrupted = false;
    loop {
        let reports = {
            let mut queue = queue().lock();
            WAITING.store(false, Ordering::Relaxed);
            std::mem::take(&mut *queue)
        };
        if reports.is_empty() {
            break;
        }
        for report in reports {
            match report.deliver(py) {
                Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => is_interrupted = true,
                // The functions of the package raise nothing else, unless the interpreter ends.
                Err(error) => error.write_unraisable(py, None),
                Ok(()) => {}
            }
        }
    }
    // The call goes on, so that its lease is not lost. The interrupt comes when Python's code goes on.
    if is_interrupted
        && let Err(error) = observing(py).and_then(|module| module.call_method0("interrupt_main"))
    {
        error.write_unraisable(py, None);
    }
}

impl Report {
    fn deliver(self, py: Python<'_>) -> PyResult<()> {
        match self {
            Report::Event(target, event) => {
                let observer = target.observer.lock().as_ref().map(|observer| observer.clone_ref(py));
                let Some(observer) = observer else { return Ok(()) };
                observing(py)?.call_method1("deliver", (observer, event))?;
            }
            Report::Log(level, text) => drop(observing(py)?.call_method1("log", (level, text))?),
        }
        Ok(())
    }
}
