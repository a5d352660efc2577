//! Replies: answers that may be known already.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::block_on::block_on;

/// An answer: `.await` it in a task, or `.wait()` for it in a thread.
///
/// Memory answers at once and allocates nothing; a store across a network answers later. Both have one
/// signature, so there are no twins of functions for threads and for tasks.
///
/// # Examples
///
/// ```
/// use tollgate_store::Reply;
///
/// assert_eq!(Reply::ready(7).wait(), 7, "in a thread");
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert_eq!(Reply::later(async { 7 }).await, 7, "in a task");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "an answer that is not waited for may never be asked for"]
pub struct Reply<'a, T>(ReplyState<'a, T>);

enum ReplyState<'a, T> {
    Here(Option<T>),
    Later(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> Reply<'a, T> {
    /// Returns an answer that is known already.
    #[inline]
    pub fn ready(answer: T) -> Reply<'a, T> {
        Reply(ReplyState::Here(Some(answer)))
    }

    /// Returns the answer of a future.
    pub fn later(future: impl Future<Output = T> + Send + 'a) -> Reply<'a, T> {
        Reply(ReplyState::Later(Box::pin(future)))
    }

    /// Returns the answer of a future that is begun now: what it has to send is sent when this returns.
    pub fn eager(future: impl Future<Output = T> + Send + 'a) -> Reply<'a, T> {
        let mut future: Pin<Box<dyn Future<Output = T> + Send + 'a>> = Box::pin(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Reply::ready(answer),
            Poll::Pending => Reply(ReplyState::Later(future)),
        }
    }

    /// Returns the answer; the thread waits for it if it is not known yet.
    ///
    /// # Panics
    ///
    /// If the reply was polled to its end before.
    #[inline]
    pub fn wait(self) -> T {
        match self.0 {
            ReplyState::Here(answer) => answer.expect("a reply is waited for once"),
            ReplyState::Later(future) => block_on(future),
        }
    }
}

// An answer that is here is never pinned: it is only ever moved out.
impl<T> Unpin for Reply<'_, T> {}

impl<T> Future for Reply<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            ReplyState::Here(answer) => Poll::Ready(answer.take().expect("a reply is awaited once")),
            ReplyState::Later(future) => future.as_mut().poll(context),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Reply<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ReplyState::Here(answer) => f.debug_tuple("Reply").field(answer).finish(),
            ReplyState::Later(_) => f.write_str("Reply(later)"),
        }
    }
}
