//! Waiting by the clock that the limits go by, so that a test which turns it waits for nothing.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tollgate::store::Alarm;
use tollgate::{Clock, Tick};

/// Waits until a time.
///
/// # Cancel safety
///
/// Dropping it leaves an alarm that wakes no task.
pub(crate) async fn until(clock: &Clock, time: Tick) {
    if clock.now() >= time {
        return;
    }
    let bell = Arc::new(SleepWaker::default());
    let weak = Arc::downgrade(&bell);
    clock.alarm(time, weak);
    poll_fn(|context| {
        let mut state = bell.0.lock();
        if state.rung {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    })
    .await;
}

#[derive(Default)]
struct SleepWaker(Mutex<SleepState>);

#[derive(Default)]
struct SleepState {
    rung: bool,
    waker: Option<Waker>,
}

impl Alarm for SleepWaker {
    fn ring(self: Arc<Self>, _at: Tick, _clock: &Clock) {
        let waker = {
            let mut state = self.0.lock();
            state.rung = true;
            state.waker.take()
        };
        // A waker may do anything, so it is called with no lock held.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
