//! How long a call takes.

use std::time::Duration;

use tollgate_core::Tick;

use crate::Clock;

/// Measures how long a call takes, by the system's clock: the time of a store may be another one.
///
/// ```
/// use std::time::Duration;
/// use tollgate_store::workers::CallTimer;
///
/// let timer = CallTimer::start();
/// assert!(timer.elapsed() < Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CallTimer(Tick);

impl CallTimer {
    /// Starts to measure.
    pub fn start() -> CallTimer {
        CallTimer(Clock::system().now())
    }

    /// Returns the time since the start.
    pub fn elapsed(self) -> Duration {
        Clock::system().now().since(self.0).to_duration()
    }
}
