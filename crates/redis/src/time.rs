//! The time of the server, as far as it is known here.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tollgate_core::Tick;
use tollgate_store::Clock;

/// Beyond this the server's time is believed rather than what was believed so far, even if the answer took long.
const DRIFT_MAX: i64 = 1_000;

/// Where the time comes from.
#[derive(Clone)]
pub(crate) enum ServerTime {
    /// The server, whose time this host's clock is corrected to.
    Learnt { clock: Clock, by: Arc<AtomicI64> },
    /// A clock whose time is passed to the server, in tests.
    Given(Clock),
}

impl ServerTime {
    pub(crate) fn learnt() -> ServerTime {
        let by = Arc::new(AtomicI64::new(0));
        ServerTime::Learnt { clock: Clock::system().corrected(Arc::clone(&by)), by }
    }

    pub(crate) fn clock(&self) -> &Clock {
        match self {
            ServerTime::Learnt { clock, .. } | ServerTime::Given(clock) => clock,
        }
    }

    /// The time that is passed to scripts, if it is.
    pub(crate) fn given(&self) -> Option<Tick> {
        match self {
            ServerTime::Learnt { .. } => None,
            ServerTime::Given(clock) => Some(clock.now()),
        }
    }

    /// The server said that it is `now`, in an answer to what was asked at `asked` by this host's clock.
    pub(crate) fn learn(&self, asked: Tick, now: Tick) {
        let ServerTime::Learnt { by, .. } = self else { return };
        let here = Clock::system().now();
        let half = here.since(asked).as_micros() as i64 / 2;
        let middle = asked.as_micros() as i64 + half;
        let found = now.as_micros() as i64 - middle;
        let believed = by.load(Ordering::Relaxed);
        if (found - believed).abs() > half + DRIFT_MAX {
            by.store(found, Ordering::Relaxed);
        }
    }
}
