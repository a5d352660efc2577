//! Time as a batch sees it: of the runtime, or of a clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use tollgate::store::Alarm;
use tollgate::{Clock, Span, Tick};
use tollgate_store::Mutex;

/// Where a batch takes its time from.
#[derive(Clone, Debug)]
pub(crate) enum Time {
    /// The runtime's, which a test can pause. It begins with the batch.
    Runtime(tokio::time::Instant),
    /// That of a clock, which can be a manual clock in a test.
    Clock(Clock),
}

impl Time {
    /// The runtime's time, from now on.
    pub(crate) fn runtime() -> Time {
        Time::Runtime(tokio::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Tick {
        match self {
            Time::Runtime(began) => Tick::ZERO + Span::covering(began.elapsed()),
            Time::Clock(clock) => clock.now(),
        }
    }

    /// Makes a sleep of this time end at another instant, whether it is over or not.
    pub(crate) fn reset(&self, sleep: &mut Sleep, at: Tick) {
        match (self, &mut *sleep) {
            (Time::Runtime(began), Sleep::Runtime(sleep)) => sleep.as_mut().reset(instant(*began, at)),
            _ => *sleep = self.sleep_until(at),
        }
    }

    /// Sleeps until a time.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves no trace.
    pub(crate) fn sleep_until(&self, at: Tick) -> Sleep {
        match self {
            Time::Runtime(began) => Sleep::Runtime(Box::pin(tokio::time::sleep_until(instant(*began, at)))),
            Time::Clock(clock) => {
                let bell = Arc::new(AlarmWaker::default());
                let alarm: Arc<dyn Alarm> = Arc::clone(&bell) as Arc<dyn Alarm>;
                clock.alarm(at, Arc::downgrade(&alarm));
                Sleep::Clock(bell)
            }
        }
    }
}

/// Returns the instant of a tick. A task that sleeps for a century may be woken early, and looks again.
fn instant(began: tokio::time::Instant, at: Tick) -> tokio::time::Instant {
    began + at.since(Tick::ZERO).min(Span::from_secs(3_000_000_000)).to_duration()
}

/// A sleep.
pub(crate) enum Sleep {
    Runtime(Pin<Box<tokio::time::Sleep>>),
    Clock(Arc<AlarmWaker>),
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            Sleep::Runtime(sleep) => sleep.as_mut().poll(context),
            Sleep::Clock(bell) => bell.poll(context),
        }
    }
}

/// What a clock rings to wake a task.
#[derive(Default)]
pub(crate) struct AlarmWaker {
    rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl AlarmWaker {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut waker = self.waker.lock();
        if self.rung.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        *waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Alarm for AlarmWaker {
    fn ring(self: Arc<Self>, _: Tick, _: &Clock) {
        let waker = {
            let mut waker = self.waker.lock();
            self.rung.store(true, Ordering::Release);
            waker.take()
        };
        // With no lock held: a waker may do anything.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
