//! Futures polled by hand, and what another thread or process will have done soon.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;

use tollgate_core::Span;
use tollgate_store::Clock;

/// How long a law waits for what should come within a second, on a machine with other work to do.
const PATIENCE: Span = Span::from_secs(300);

/// Polls once, with no wakeup.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs a future to its end in this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    eventually(|| match poll(future.as_mut()) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

/// Yields to other threads until `look` returns something: a mechanism that does not work fails the law instead of hanging it.
/// No time passes by the manual clock of the law, so this is no sleep.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let system = Clock::system();
    let deadline = system.now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(system.now() < deadline, "it did not come within {:?}", PATIENCE.to_duration());
        thread::yield_now();
    }
}

/// Yields to other threads until `done`.
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    eventually(|| done().then_some(()));
}

/// Returns whether `is_so` comes true within so many tries that a store has had the time, each of which is a call to the store.
/// A store that is wrong fails sooner than by [`until`].
pub(crate) fn within_tries(mut is_so: impl FnMut() -> bool) -> bool {
    const TRIES_MAX: usize = 10_000;
    (0..TRIES_MAX).any(|_| {
        thread::yield_now();
        is_so()
    })
}
