//! The timeout of calls to a store.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tollgate_core::Span;
use tollgate_store::{Clock, Sleep, StoreError};

/// Waits for `answer`, or returns [`StoreError::Unavailable`] if it is not ready within `timeout`.
///
/// # Cancel safety
///
/// That of `answer`, which is dropped at the timeout.
pub(crate) async fn with_timeout<T, E: From<StoreError>>(
    clock: &Clock,
    timeout: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let mut answer = pin!(answer);
    let mut sleep: Option<Sleep> = None;
    poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        // Most answers are ready at once, and need no alarm.
        let sleep = sleep.get_or_insert_with(|| clock.sleep_until(clock.now() + Span::covering(timeout)));
        Pin::new(sleep)
            .poll(context)
            .map(|()| Err(StoreError::Unavailable(timeout, "no answer".into()).into()))
    })
    .await
}
