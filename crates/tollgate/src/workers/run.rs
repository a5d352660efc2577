//! Doing a job: try it, judge it, pause, try again; unless it is called off.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tollgate_core::Span;
use tollgate_store::Clock;

use super::handle::{JobError, ResultSlot};
use super::retry::{RetryRule, RetryVerdict};
use super::worker::Worker;

pub(super) type Trying<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// What a worker does with each input.
pub(super) type JobHandler<I, T, E> = Box<dyn FnMut(&Worker, I) -> Trying<T, E> + Send>;

/// An input, and the waiter for its result.
pub(super) struct QueuedInput<I, T, E> {
    pub(super) input: I,
    pub(super) promise: ReplyOnDrop<T, E>,
}

/// Notifies the waiter for a job, wherever the job is dropped before it was done.
pub(super) struct ReplyOnDrop<T, E>(pub(super) Arc<ResultSlot<T, E>>);

impl<T, E> Drop for ReplyOnDrop<T, E> {
    fn drop(&mut self) {
        self.0.finish(Err(JobError::Lost));
    }
}

/// How a worker is after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerHealth {
    Ok,
    /// The job panicked, and may have left anything behind.
    Panicked,
}

enum TryOutcome<R> {
    Done(R),
    Panicked(String),
    CalledOff,
}

/// Does a job, as often as it takes.
pub(super) async fn run<I: Clone, T, E>(
    job: QueuedInput<I, T, E>,
    worker: &Worker,
    doing: &mut JobHandler<I, T, E>,
    retry: &RetryRule<T, E>,
    clock: &Clock,
) -> WorkerHealth {
    let slot = &job.promise.0;
    let mut tries = 0;
    loop {
        tries += 1;
        worker.begin_try(tries);
        let input = job.input.clone();
        let verdict = match attempt(slot, || doing(worker, input)).await {
            TryOutcome::Done(result) => caught(|| retry.judge(tries, result)),
            TryOutcome::Panicked(why) => Err(why),
            TryOutcome::CalledOff => return WorkerHealth::Ok,
        };
        match verdict {
            Ok(RetryVerdict::Keep(result)) => slot.finish(result.map_err(JobError::Failed)),
            Ok(RetryVerdict::Invalid) => slot.finish(Err(JobError::Invalid(tries))),
            Ok(RetryVerdict::Again(length)) => {
                let until = clock.now() + Span::covering(length);
                match attempt(slot, || Box::pin(clock.sleep_until(until))).await {
                    TryOutcome::Done(()) => continue,
                    _ => return WorkerHealth::Ok,
                }
            }
            Err(why) => {
                slot.finish(Err(JobError::Panicked(why)));
                return WorkerHealth::Panicked;
            }
        }
        return WorkerHealth::Ok;
    }
}

/// Runs what `begin` begins, unless the caller that waits for it calls it off first. A panic is an outcome.
async fn attempt<'f, T, E, R>(
    slot: &ResultSlot<T, E>,
    begin: impl FnOnce() -> Pin<Box<dyn Future<Output = R> + Send + 'f>>,
) -> TryOutcome<R> {
    if slot.is_over() {
        return TryOutcome::CalledOff;
    }
    let mut future = match caught(begin) {
        Ok(future) => future,
        Err(why) => return TryOutcome::Panicked(why),
    };
    let outcome = poll_fn(|context| {
        if slot.is_called_off(context.waker()) {
            return Poll::Ready(TryOutcome::CalledOff);
        }
        match caught(|| future.as_mut().poll(context)) {
            Ok(poll) => poll.map(TryOutcome::Done),
            Err(why) => Poll::Ready(TryOutcome::Panicked(why)),
        }
    })
    .await;
    // What it holds is given back before anything else happens; that, too, may panic.
    match caught(|| drop(future)) {
        Ok(()) => outcome,
        Err(why) => TryOutcome::Panicked(why),
    }
}

/// What `work` answers, or the words it panicked with.
pub(super) fn caught<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    // What it leaves behind is thrown away: the worker makes its job anew.
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| words(&*payload))
}

pub(super) fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".into())
}
