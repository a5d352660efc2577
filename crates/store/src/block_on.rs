//! Waiting for a future in a thread, with no runtime.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if what is being polled is waited for by a thread that has nothing else to do, as in
/// [`Reply::wait`](crate::Reply::wait). A store may then do slow work on this thread; in a task it may not.
pub fn may_block() -> bool {
    WAITS.get()
}

/// Marks the thread as one that waits, until it is dropped.
struct Waits(bool);

impl Waits {
    fn new() -> Waits {
        Waits(WAITS.replace(true))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        WAITS.set(self.0);
    }
}

/// Polls a future that this thread waits for with nothing else to do: a store may do slow work in it, as in
/// [`Reply::wait`](crate::Reply::wait). For callers that sleep by means of their own until the waker is called.
///
/// ```
/// use std::pin::{Pin, pin};
/// use std::task::{Context, Poll, Waker};
/// use tollgate_store::poll_blocking;
///
/// let future = pin!(async { 7 });
/// assert_eq!(poll_blocking(future, &mut Context::from_waker(Waker::noop())), Poll::Ready(7));
/// ```
pub fn poll_blocking<F: Future>(future: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
    let _waits = Waits::new();
    future.poll(context)
}

/// Runs `future` to its end, parking the thread while there is nothing to do.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let _waits = Waits::new();
    // Most answers are there at once: try before making a waker that can wake the thread.
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_thread_waits_for_may_block() {
        assert!(!may_block());
        assert!(block_on(async { may_block() }));
        let inside = block_on(async { (block_on(async { may_block() }), may_block()) });
        assert_eq!(inside, (true, true));
        assert!(!may_block());
    }
}
