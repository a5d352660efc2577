//! Futures that run to completion, also if their caller stops waiting.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Runs where it is polled, with the timers and connections of a runtime. Dropped before its end, it goes on there
/// detached, and `abandoned` gets its output.
///
/// ```
/// use tollgate_store::workers::{RunToCompletion, Workers};
///
/// # let workers = Workers::start("example")?;
/// let handle = workers.handle().clone();
/// let call = RunToCompletion::new(handle.clone(), async { 7 }, |output| println!("undo {output}"));
/// assert_eq!(handle.block_on(call), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct RunToCompletion<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    handle: Handle,
    /// True if it was polled: a future that never began need not be ended.
    is_begun: bool,
    future: Option<Pin<Box<F>>>,
    abandoned: Option<Box<dyn FnOnce(T) + Send>>,
}

impl<T, F> RunToCompletion<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    /// Runs `future` within the runtime of `handle`; if it is dropped, `abandoned` gets its output.
    pub fn new(
        handle: Handle,
        future: F,
        abandoned: impl FnOnce(T) + Send + 'static,
    ) -> RunToCompletion<T, F> {
        RunToCompletion {
            handle,
            is_begun: false,
            future: Some(Box::pin(future)),
            abandoned: Some(Box::new(abandoned)),
        }
    }
}

impl<T, F> Future for RunToCompletion<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.is_begun = true;
        let RunToCompletion { handle, future, .. } = &mut *self;
        let _entered = handle.enter();
        let polled = future.as_mut().expect("it is not polled after its end").as_mut().poll(context);
        if polled.is_ready() {
            *future = None;
        }
        polled
    }
}

impl<T, F> Drop for RunToCompletion<T, F>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn drop(&mut self) {
        let (Some(future), Some(abandoned)) = (self.future.take(), self.abandoned.take()) else { return };
        if self.is_begun {
            self.handle.spawn(async move { abandoned(future.await) });
        }
    }
}
