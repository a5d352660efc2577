//! The time of a batch: that of the runtime, or of a clock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tollgate::{Clock, Span, Tick};

/// The source of a batch's time.
#[derive(Clone, Debug)]
pub(crate) enum Time {
    /// The runtime, whose time a test can pause. It is zero when the batch begins.
    Runtime(tokio::time::Instant),
    /// A clock, which a test can set.
    Clock(Clock),
}

impl Time {
    /// Returns the time of the runtime, from now on.
    pub(crate) fn runtime() -> Time {
        Time::Runtime(tokio::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Tick {
        match self {
            Time::Runtime(began) => Tick::ZERO + Span::covering(began.elapsed()),
            Time::Clock(clock) => clock.now(),
        }
    }

    /// Changes the end of a sleep, whether it is over or not.
    pub(crate) fn reset(&self, sleep: &mut BatchSleep, at: Tick) {
        match (self, &mut *sleep) {
            (Time::Runtime(began), BatchSleep::Runtime(sleep)) => sleep.as_mut().reset(instant(*began, at)),
            _ => *sleep = self.sleep_until(at),
        }
    }

    /// Sleeps until a time.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves no trace.
    pub(crate) fn sleep_until(&self, at: Tick) -> BatchSleep {
        match self {
            Time::Runtime(began) => {
                BatchSleep::Runtime(Box::pin(tokio::time::sleep_until(instant(*began, at))))
            }
            Time::Clock(clock) => BatchSleep::Clock(clock.sleep_until(at)),
        }
    }
}

/// Returns the instant of a tick, at most a century ahead: an instant that is too far overflows. A
/// sleep that ends early is harmless, because the batch checks the time again.
fn instant(began: tokio::time::Instant, at: Tick) -> tokio::time::Instant {
    began + at.since(Tick::ZERO).min(Span::from_secs(3_000_000_000)).to_duration()
}

/// A sleep of a batch's [`Time`].
pub(crate) enum BatchSleep {
    Runtime(Pin<Box<tokio::time::Sleep>>),
    Clock(tollgate_store::Sleep),
}

impl Future for BatchSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            BatchSleep::Runtime(sleep) => sleep.as_mut().poll(context),
            BatchSleep::Clock(sleep) => Pin::new(sleep).poll(context),
        }
    }
}
