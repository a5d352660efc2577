//! Time: the system's, or one that a test turns by hand.

mod manual;
mod system;

use std::sync::{Arc, Weak};

use tollgate_core::Tick;

use manual::Hands;
pub use manual::ManualClock;
use system::SystemClock;

/// What a clock can wake.
pub trait Alarm: Send + Sync {
    /// The time that was asked for, `at`, has come.
    fn ring(self: Arc<Self>, at: Tick, clock: &Clock);
}

/// Where time comes from. Cloning is cheap, and clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(&'static SystemClock),
    Manual(Arc<Hands>),
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::system()
    }
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Clock {
        Clock(Source::System(SystemClock::get()))
    }

    /// The time. The system's may step back by a microsecond or two; a bucket never does.
    #[inline]
    pub fn now(&self) -> Tick {
        match &self.0 {
            Source::System(clock) => clock.now(),
            Source::Manual(hands) => hands.now(),
        }
    }

    /// Rings `alarm` at `at`, or at once if that has passed; never if it is gone by then.
    pub fn alarm(&self, at: Tick, alarm: Weak<dyn Alarm>) {
        match &self.0 {
            #[cfg(not(loom))]
            Source::System(_) => crate::timer::Timer::get().alarm(at, alarm),
            #[cfg(loom)]
            Source::System(_) => drop((at, alarm)),
            Source::Manual(hands) => {
                if let Some(alarm) = hands.alarm(at, alarm) {
                    alarm.ring(at, self);
                }
            }
        }
    }
}
