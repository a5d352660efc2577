//! A sleep: a future that a clock completes at a time.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate_core::Tick;

use super::{Alarm, Clock};
use crate::sync::Mutex;

/// A future that is ready once a clock has reached a time; [`Clock::sleep_until`] makes it.
///
/// # Examples
///
/// ```
/// use tollgate_core::Span;
/// use tollgate_store::{Clock, Sleep};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let clock = Clock::system();
/// let at = clock.now() + Span::from_millis(1);
/// // The alarm is set here, so the sleep takes no longer if it is awaited late.
/// let sleep: Sleep = clock.sleep_until(at);
/// sleep.await;
/// assert!(clock.now() >= at);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a sleep does nothing unless it is awaited"]
pub struct Sleep(Arc<SleepAlarm>);

#[derive(Default)]
struct SleepAlarm(Mutex<SleepState>);

#[derive(Default)]
enum SleepState {
    /// No task has polled it yet.
    #[default]
    Unpolled,
    Waiting(Waker),
    Over,
}

impl Clock {
    /// Sleeps until this clock shows `at`, by one alarm of the clock: under a [`ManualClock`](crate::ManualClock) the sleep
    /// is over when a test has set the clock to that time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the sleep loses nothing: an alarm whose target is gone does not ring.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::task::{Context, Waker};
    /// use tollgate_core::{Span, Tick};
    /// use tollgate_store::ManualClock;
    ///
    /// let manual = ManualClock::at(Tick::from_secs(10));
    /// let mut sleep = pin!(manual.clock().sleep_until(Tick::from_secs(12)));
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(sleep.as_mut().poll(&mut context).is_pending());
    /// manual.advance(Span::from_secs(2));
    /// assert!(sleep.as_mut().poll(&mut context).is_ready());
    /// ```
    pub fn sleep_until(&self, at: Tick) -> Sleep {
        let alarm = Arc::<SleepAlarm>::default();
        if at <= self.now() {
            // Without the thread of the timer, which would ring it a moment later.
            *alarm.0.lock() = SleepState::Over;
        } else {
            let target = Arc::downgrade(&alarm);
            self.alarm(at, target);
        }
        Sleep(alarm)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Declared before the guard and so dropped after it: the last waker of a task may drop anything.
        let _replaced;
        let mut state = self.0.0.lock();
        if matches!(*state, SleepState::Over) {
            return Poll::Ready(());
        }
        _replaced = mem::replace(&mut *state, SleepState::Waiting(context.waker().clone()));
        Poll::Pending
    }
}

impl Alarm for SleepAlarm {
    fn ring(self: Arc<Self>, _: Tick, _: &Clock) {
        let before = mem::replace(&mut *self.0.lock(), SleepState::Over);
        // With no lock held: a waker may do anything.
        if let SleepState::Waiting(waker) = before {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use tollgate_core::Span;

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_sleep_wakes_the_last_task_that_polled_it_once_and_not_early() {
        let manual = ManualClock::at(Tick::from_secs(10));
        let counters = [(); 2].map(|()| Arc::new(WakeCounter::default()));
        let wakes = || counters.each_ref().map(|counter| counter.0.load(Ordering::SeqCst));
        let mut sleep = pin!(manual.clock().sleep_until(Tick::from_secs(11)));
        let mut poll =
            |task: usize| sleep.as_mut().poll(&mut Context::from_waker(&Waker::from(counters[task].clone())));
        assert!(poll(0).is_pending() && poll(1).is_pending());
        manual.advance(Span::from_micros(999_999));
        assert_eq!(wakes(), [0, 0]);
        manual.advance(Span::from_micros(1));
        assert_eq!(wakes(), [0, 1]);
        manual.advance(Span::from_secs(1));
        assert_eq!(wakes(), [0, 1]);
        assert!(poll(0).is_ready() && poll(1).is_ready());
    }

    #[test]
    fn a_sleep_until_a_time_that_has_passed_is_over_and_sets_no_alarm() {
        let manual = ManualClock::at(Tick::from_secs(10));
        let mut sleep = pin!(manual.clock().sleep_until(Tick::from_secs(10)));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(manual.alarms(), 0);
    }

    #[test]
    fn a_sleep_that_is_dropped_wakes_no_task() {
        let manual = ManualClock::at(Tick::from_secs(10));
        let counter = Arc::new(WakeCounter::default());
        {
            let mut sleep = pin!(manual.clock().sleep_until(Tick::from_secs(11)));
            let waker = Waker::from(counter.clone());
            assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        manual.advance(Span::from_secs(2));
        assert_eq!(counter.0.load(Ordering::SeqCst), 0);
    }
}
