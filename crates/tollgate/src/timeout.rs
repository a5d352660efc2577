//! Timeouts for calls to a store.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use tollgate_core::{Span, Tick};
use tollgate_store::{Alarm, Clock, Mutex, StoreError};

#[derive(Default)]
struct SleepAlarm(Mutex<(bool, Option<Waker>)>);

impl Alarm for SleepAlarm {
    fn ring(self: Arc<Self>, _: Tick, _: &Clock) {
        let waker = {
            let mut bell = self.0.lock();
            bell.0 = true;
            bell.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Returns the answer, or [`StoreError::Unavailable`] if it takes longer than `timeout`.
///
/// # Cancel safety
///
/// As that of `answer`, which is dropped when the time is over.
pub(crate) async fn with_timeout<T, E: From<StoreError>>(
    clock: &Clock,
    timeout: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let mut answer = pin!(answer);
    let mut bell: Option<Arc<SleepAlarm>> = None;
    poll_fn(|context| {
        if let Poll::Ready(said) = answer.as_mut().poll(context) {
            return Poll::Ready(said);
        }
        // Most answers are ready at the first poll, and need no alarm.
        let bell = bell.get_or_insert_with(|| {
            let bell = Arc::<SleepAlarm>::default();
            let alarm: Arc<dyn Alarm> = bell.clone();
            let alarm: Weak<dyn Alarm> = Arc::downgrade(&alarm);
            clock.alarm(clock.now() + Span::covering(timeout), alarm);
            bell
        });
        let mut heard = bell.0.lock();
        if heard.0 {
            let why = StoreError::Unavailable(timeout, "no answer".into());
            return Poll::Ready(Err(why.into()));
        }
        heard.1 = Some(context.waker().clone());
        Poll::Pending
    })
    .await
}

/// Waits for `length`.
///
/// # Cancel safety
///
/// Dropping it loses nothing.
#[cfg(feature = "workers")]
pub(crate) async fn pause(clock: &Clock, length: Span) {
    let bell = Arc::<SleepAlarm>::default();
    let alarm: Arc<dyn Alarm> = bell.clone();
    let alarm: Weak<dyn Alarm> = Arc::downgrade(&alarm);
    clock.alarm(clock.now() + length, alarm);
    poll_fn(|context| {
        let _replaced;
        let mut heard = bell.0.lock();
        if heard.0 {
            return Poll::Ready(());
        }
        _replaced = heard.1.replace(context.waker().clone());
        Poll::Pending
    })
    .await;
}
