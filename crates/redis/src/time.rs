//! Server time, estimated from its replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tollgate_core::Tick;
use tollgate_store::Clock;

/// By how many microseconds a new estimate has to differ from the old one, beyond what the duration of the call explains.
const DRIFT_MAX: i64 = 1_000;

/// The source of the store's time.
#[derive(Clone)]
pub(crate) enum ServerTime {
    /// The server, whose time this host's clock is corrected to.
    Learned { clock: Clock, by: Arc<AtomicI64> },
    /// A clock whose time is passed to the server, in tests.
    Given(Clock),
}

impl ServerTime {
    pub(crate) fn learned() -> ServerTime {
        let by = Arc::new(AtomicI64::new(0));
        ServerTime::Learned { clock: Clock::system().corrected(Arc::clone(&by)), by }
    }

    pub(crate) fn clock(&self) -> &Clock {
        match self {
            ServerTime::Learned { clock, .. } | ServerTime::Given(clock) => clock,
        }
    }

    /// Returns the time that is passed to scripts; `None` if they take the server's.
    pub(crate) fn given(&self) -> Option<Tick> {
        match self {
            ServerTime::Learned { .. } => None,
            ServerTime::Given(clock) => Some(clock.now()),
        }
    }

    /// Corrects the clock by the server's time `now`, from the reply to a call that was sent at `asked` by this host's clock.
    pub(crate) fn learn(&self, asked: Tick, now: Tick) {
        let ServerTime::Learned { by, .. } = self else { return };
        let here = Clock::system().now();
        let half = here.since(asked).as_micros() as i64 / 2;
        let middle = asked.as_micros() as i64 + half;
        let found = now.as_micros() as i64 - middle;
        let known = by.load(Ordering::Relaxed);
        if (found - known).abs() > half + DRIFT_MAX {
            by.store(found, Ordering::Relaxed);
        }
    }
}
