//! A future that is run to its end, whether a caller awaits it or not.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Runs where it is polled, with the timers and connections of a runtime. Dropped before its end, it goes on there
/// detached, and `unheard` gets its output.
pub struct ToTheEnd<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    handle: Handle,
    /// Once it was polled: what was never begun need not be ended.
    is_begun: bool,
    future: Option<Pin<Box<F>>>,
    unheard: Option<Box<dyn FnOnce(T) + Send>>,
}

impl<T, F> ToTheEnd<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    /// `future` within the runtime of `handle`; if it is dropped, `unheard` gets its output.
    pub fn new(handle: Handle, future: F, unheard: impl FnOnce(T) + Send + 'static) -> ToTheEnd<T, F> {
        ToTheEnd { handle, is_begun: false, future: Some(Box::pin(future)), unheard: Some(Box::new(unheard)) }
    }
}

impl<T, F> Future for ToTheEnd<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.is_begun = true;
        let ToTheEnd { handle, future, .. } = &mut *self;
        let _entered = handle.enter();
        let polled = future.as_mut().expect("it is not polled after its end").as_mut().poll(context);
        if polled.is_ready() {
            *future = None;
        }
        polled
    }
}

impl<T, F> Drop for ToTheEnd<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn drop(&mut self) {
        let (Some(future), Some(unheard)) = (self.future.take(), self.unheard.take()) else { return };
        if self.is_begun {
            self.handle.spawn(async move { unheard(future.await) });
        }
    }
}
