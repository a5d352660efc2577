//! Handles: what a caller has of a job that it submitted.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate_store::{Mutex, Reply};

/// Why there is no result of a job.
///
/// ```
/// use tollgate::workers::{JobError, WorkerPool};
///
/// let pool = WorkerPool::threads(1).build(|_, n: u64| if n > 0 { Ok(n) } else { Err("none".to_owned()) })?;
/// assert_eq!(pool.submit(0).wait()?.wait(), Err(JobError::Failed("none".to_owned())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError<E> {
    /// It failed, as often as it was tried.
    #[error(transparent)]
    Failed(E),
    /// What came out was not valid, as often as it was tried.
    #[error("what came out was not valid, after {0} tries")]
    Invalid(u32),
    /// It panicked, with these words.
    #[error("the job panicked: {0}")]
    Panicked(String),
    /// It was called off.
    #[error("the job was called off")]
    Cancelled,
    /// Its worker is gone, with the runtime it ran on.
    #[error("the worker of the job is gone; hand the job in again")]
    Lost,
}

/// A job that was submitted: `.await` its result in a task, or `.wait()` for it in a thread.
///
/// # Cancel safety
///
/// Dropping it lets the job go on, detached: no caller gets its result. [`cancel`](Handle::cancel) calls it off.
///
/// ```
/// use tollgate::workers::{WorkerPool};
///
/// let pool = WorkerPool::threads(1).build(|_, n: u64| Ok::<_, std::fmt::Error>(n + 1))?;
/// let handle = pool.submit(1).wait()?;
/// // ... do something else ...
/// assert_eq!(handle.wait()?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a job goes on without its handle, but its result is dropped"]
pub struct Handle<T, E>(pub(super) Arc<ResultSlot<T, E>>);

/// What a job and the caller that waits for its result share.
pub(super) struct ResultSlot<T, E>(Mutex<JoinState<T, E>>);

struct JoinState<T, E> {
    result: Option<Result<T, JobError<E>>>,
    is_over: bool,
    result_waker: Option<Waker>,
    cancel_waker: Option<Waker>,
    on_finished: Option<(Arc<FinishedJob>, usize)>,
}

/// Jobs that were finished, by their numbers, in the order they were.
#[derive(Default)]
pub(super) struct FinishedJob(Mutex<(VecDeque<usize>, Option<Waker>)>);

impl FinishedJob {
    fn push(&self, number: usize) -> Option<Waker> {
        let mut finished = self.0.lock();
        finished.0.push_back(number);
        finished.1.take()
    }

    /// The next that was finished.
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<usize> {
        let _replaced;
        let mut finished = self.0.lock();
        match finished.0.pop_front() {
            Some(number) => Poll::Ready(number),
            None => {
                _replaced = finished.1.replace(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T, E> ResultSlot<T, E> {
    /// A slot for a job; `on_finished` is notified when the job is finished, by a number.
    pub(super) fn new(on_finished: Option<(Arc<FinishedJob>, usize)>) -> Arc<ResultSlot<T, E>> {
        let state =
            JoinState { result: None, is_over: false, result_waker: None, cancel_waker: None, on_finished };
        Arc::new(ResultSlot(Mutex::new(state)))
    }

    /// Sets the result, unless one was set before.
    pub(super) fn finish(&self, result: Result<T, JobError<E>>) {
        let (wakers, _unused_result) = {
            let mut state = self.0.lock();
            if state.is_over {
                ([None, None, None], Some(result))
            } else {
                state.is_over = true;
                state.result = Some(result);
                let on_finished =
                    state.on_finished.take().and_then(|(finished, number)| finished.push(number));
                ([state.result_waker.take(), state.cancel_waker.take(), on_finished], None)
            }
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.lock().is_over
    }

    /// Returns whether the job need not go on; if it must, `waker` is woken once it need not.
    pub(super) fn is_called_off(&self, waker: &Waker) -> bool {
        let _replaced;
        let mut state = self.0.lock();
        if !state.is_over {
            _replaced = state.cancel_waker.replace(waker.clone());
        }
        state.is_over
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<T, JobError<E>>> {
        let _replaced;
        let mut state = self.0.lock();
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None if state.is_over => panic!("the result of a job is asked for once"),
            None => {
                _replaced = state.result_waker.replace(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The result, if it is there.
    pub(super) fn take(&self) -> Option<Result<T, JobError<E>>> {
        self.0.lock().result.take()
    }
}

impl<T: Send, E: Send> Handle<T, E> {
    /// The result; the thread waits for it.
    ///
    /// # Errors
    ///
    /// [`JobError`].
    pub fn wait(self) -> Result<T, JobError<E>> {
        Reply::later(self).wait()
    }

    /// Calls the job off: one that waits is not begun, one that runs as a future is dropped where it is, and one that
    /// runs in a thread goes on to its end, detached. A caller that waits for its result is notified at once.
    pub fn cancel(&self) {
        self.0.finish(Err(JobError::Cancelled));
    }

    /// Whether the result is there.
    pub fn is_finished(&self) -> bool {
        self.0.is_over()
    }
}

impl<T, E> Future for Handle<T, E> {
    type Output = Result<T, JobError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

impl<T, E> fmt::Debug for Handle<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("is_finished", &self.0.is_over()).finish()
    }
}
