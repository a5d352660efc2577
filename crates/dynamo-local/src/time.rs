//! The engine's source of time.

use std::fmt;
use std::sync::Arc;

use dynoxide::storage_backend::Clock as EngineClock;
use parking_lot::RwLock;
use tollgate_store::Clock;

type Micros = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A source of time that can be replaced.
#[derive(Clone)]
pub(crate) struct TimeSource(Arc<RwLock<Micros>>);

impl TimeSource {
    pub(crate) fn system() -> TimeSource {
        TimeSource(Arc::new(RwLock::new(Arc::new(|| Clock::system().now().as_micros()))))
    }

    pub(crate) fn set(&self, time: impl Fn() -> u64 + Send + Sync + 'static) {
        *self.0.write() = Arc::new(time);
    }

    /// Returns the microseconds since 1970.
    pub(crate) fn micros(&self) -> u64 {
        // The source is called without the lock, because it may do anything.
        let time = Arc::clone(&self.0.read());
        time()
    }
}

impl EngineClock for TimeSource {
    fn now_unix_secs(&self) -> u64 {
        self.micros() / 1_000_000
    }

    fn now_unix_secs_f64(&self) -> f64 {
        self.micros() as f64 / 1e6
    }
}

impl fmt::Debug for TimeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimeSource").field(&self.micros()).finish()
    }
}
