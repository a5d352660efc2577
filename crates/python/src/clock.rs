//! A clock for tests.

use pyo3::prelude::*;
use tollgate::{Clock, ManualClock, Span, Tick};

use crate::amount::span;

/// Where a manual clock starts: on 1 January 2020.
const START: Tick = Tick::from_secs(1_577_836_800);

/// A clock for tests, which stands still until it is advanced: `LimitSet([...], clock=clock)`. Advancing it admits the waiters whose
/// time has come before it returns, so that a test waits for nothing.
///
/// ```python
/// import tollgate as tg
/// from tollgate.testing import ManualClock
///
/// clock = ManualClock()
/// limits = tg.LimitSet([tg.per_minute("rpm", 1)], clock=clock)
/// assert limits.try_acquire(rpm=1)
/// assert not limits.try_acquire(rpm=1)
/// clock.advance(60)
/// assert limits.try_acquire(rpm=1)
/// ```
#[pyclass(frozen, name = "ManualClock", module = "tollgate.testing")]
pub(crate) struct PyManualClock(ManualClock);

impl PyManualClock {
    pub(crate) fn clock(&self) -> Clock {
        self.0.clock()
    }
}

#[pymethods]
impl PyManualClock {
    #[new]
    fn new() -> PyManualClock {
        PyManualClock(ManualClock::at(START))
    }

    /// Sets it forward by so many seconds (or a `timedelta`): `clock.advance(0.5)`. Waiters are admitted at their instants.
    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = Span::covering(span("seconds", seconds)?);
        py.detach(|| self.0.advance(by));
        Ok(())
    }

    /// How many seconds it was advanced since it was made: `clock.advance(5); assert clock.elapsed == 5`.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.0.now().since(START).to_duration().as_secs_f64()
    }

    fn __repr__(&self) -> String {
        format!("<ManualClock {} s>", self.elapsed())
    }
}
