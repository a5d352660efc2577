//! Time: the system's, or a manual clock that a test sets.

mod alarm_target;
mod corrected;
mod host;
mod manual;
mod sleep;
mod store_clock;
mod system;

use std::sync::{Arc, Weak};
use std::time::Instant;

use tollgate_core::{Span, Tick};

pub(crate) use alarm_target::AlarmTarget;
use corrected::Corrected;
pub use corrected::Correction;
pub use host::HostClock;
use manual::Hands;
pub use manual::ManualClock;
pub use sleep::Sleep;
pub use store_clock::{ClockWords, StoreClock};
use system::SystemClock;

/// A target that a clock notifies at a time.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use tollgate_core::{Span, Tick};
/// use tollgate_store::{Alarm, Clock, ManualClock};
///
/// #[derive(Default)]
/// struct Flag(AtomicBool);
///
/// impl Alarm for Flag {
///     fn ring(self: Arc<Self>, _: Tick, _: &Clock) {
///         self.0.store(true, Ordering::Relaxed);
///     }
/// }
///
/// let (manual, flag) = (ManualClock::at(Tick::from_secs(10)), Arc::new(Flag::default()));
/// let alarm: Arc<dyn Alarm> = flag.clone();
/// manual.clock().alarm(Tick::from_secs(11), Arc::downgrade(&alarm));
/// manual.advance(Span::from_secs(1));
/// assert!(flag.0.load(Ordering::Relaxed));
/// ```
pub trait Alarm: Send + Sync {
    /// Called when the requested time, `at`, has come.
    fn ring(self: Arc<Self>, at: Tick, clock: &Clock);
}

/// A source of time. Cloning is cheap, and clones show the same time.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use tollgate_core::Tick;
/// use tollgate_store::{Clock, ManualClock};
///
/// let year_2020 = Tick::from_secs(1_577_836_800);
/// assert!(Clock::system().now() > year_2020);
/// // A deadline of another API, as a time of this clock.
/// let clock = ManualClock::at(Tick::from_secs(10)).clock();
/// let deadline = clock.tick_at(Instant::now() + Duration::from_secs(5));
/// assert!(deadline > clock.now() && deadline <= Tick::from_secs(15));
/// ```
#[derive(Clone, Debug)]
pub struct Clock(ClockSource);

#[derive(Clone, Debug)]
enum ClockSource {
    System(&'static SystemClock),
    /// The monotonic clock of the host.
    Monotonic(&'static SystemClock),
    Manual(Arc<Hands>),
    Corrected(Arc<Corrected>),
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::system()
    }
}

impl Clock {
    /// Returns the system's clock.
    pub fn system() -> Clock {
        Clock(ClockSource::System(SystemClock::get()))
    }

    /// The monotonic clock of the host, which other clocks are corrections of. Its alarms may ring early.
    fn monotonic() -> Clock {
        Clock(ClockSource::Monotonic(SystemClock::get()))
    }

    /// Returns a clock that shows this one's time plus `by` microseconds, which may change at any time. For stores that go
    /// by the time of a service rather than that of the host.
    ///
    /// An alarm never rings early. If the correction jumps forward by more than half of what is left of a wait, it
    /// may ring late: when half of the wait is over.
    #[must_use]
    pub fn corrected(&self, by: Arc<impl Correction + 'static>) -> Clock {
        Clock(ClockSource::Corrected(Arc::new(Corrected::new(self.clone(), by))))
    }

    /// Returns the time. The system's may step back by a microsecond or two; a bucket never does.
    #[inline]
    pub fn now(&self) -> Tick {
        match &self.0 {
            ClockSource::System(clock) => clock.now(),
            _ => self.now_otherwise(),
        }
    }

    /// Apart, so that what most callers need is small enough to be inlined.
    fn now_otherwise(&self) -> Tick {
        match &self.0 {
            ClockSource::System(clock) => clock.now(),
            ClockSource::Monotonic(clock) => clock.monotonic(),
            ClockSource::Manual(hands) => hands.now(),
            ClockSource::Corrected(clock) => clock.now(),
        }
    }

    /// Returns the time of this clock when the monotonic clock of the process will show `instant`.
    #[allow(clippy::disallowed_methods, reason = "what is left until an instant is counted from now")]
    pub fn tick_at(&self, instant: Instant) -> Tick {
        self.now() + Span::covering(instant.saturating_duration_since(Instant::now()))
    }

    /// Returns what the monotonic clock of the process will show at `tick`, for an API that takes an instant; now, if that has
    /// passed.
    #[allow(clippy::disallowed_methods, reason = "what is left until a tick is counted from now")]
    pub fn instant_at(&self, tick: Tick) -> Instant {
        Instant::now() + tick.since(self.now()).to_duration()
    }

    /// Rings `alarm` at `at`, or at once if that has passed; never if it is gone by then.
    pub fn alarm(&self, at: Tick, alarm: Weak<dyn Alarm>) {
        match &self.0 {
            ClockSource::Corrected(clock) => clock.alarm(at, alarm),
            _ => self.wake(at, AlarmTarget::Alarm(alarm)),
        }
    }

    fn wake(&self, at: Tick, sleeper: AlarmTarget) {
        match &self.0 {
            #[cfg(not(loom))]
            ClockSource::System(_) => crate::timer::Timer::get().alarm(at, sleeper),
            // The system's clock may step forward meanwhile, so this may ring early, never late.
            #[cfg(not(loom))]
            ClockSource::Monotonic(clock) => {
                crate::timer::Timer::get().alarm(clock.now() + at.since(clock.monotonic()), sleeper);
            }
            #[cfg(loom)]
            ClockSource::System(_) | ClockSource::Monotonic(_) => drop((at, sleeper)),
            ClockSource::Manual(hands) => {
                if let Some(alarm) = hands.alarm(at, sleeper) {
                    alarm.ring(at, self);
                }
            }
            ClockSource::Corrected(clock) => clock.wake(at, sleeper),
        }
    }
}
