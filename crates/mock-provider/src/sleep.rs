//! Sleeping by the clock of the limits, so that a test with a manual clock does not wait.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tollgate::store::Alarm;
use tollgate::{Clock, Tick};

/// Sleeps until a time.
///
/// # Cancel safety
///
/// Dropping the future leaves an alarm that wakes no task.
pub(crate) async fn until(clock: &Clock, time: Tick) {
    if clock.now() >= time {
        return;
    }
    let sleeper = Arc::new(SleepWaker::default());
    let weak = Arc::downgrade(&sleeper);
    clock.alarm(time, weak);
    poll_fn(|context| {
        let mut state = sleeper.0.lock();
        if state.fired {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
}

#[derive(Default)]
struct SleepWaker(Mutex<MockSleepState>);

#[derive(Default)]
struct MockSleepState {
    fired: bool,
    waker: Option<Waker>,
}

impl Alarm for SleepWaker {
    fn ring(self: Arc<Self>, _at: Tick, _clock: &Clock) {
        let waker = {
            let mut state = self.0.lock();
            state.fired = true;
            state.waker.take()
        };
        // Wakers are called without a lock, because a waker may do anything.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
