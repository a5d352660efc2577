//! Doing a job: try it, judge it, pause, try again; unless it is called off.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tollgate_core::Span;
use tollgate_store::Clock;

use super::handle::{JobError, Slot};
use super::retry::{Retry, Verdict};
use super::worker::Worker;
use crate::within::pause;

pub(super) type Trying<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// What a worker does with each input.
pub(super) type Doing<I, T, E> = Box<dyn FnMut(&Worker, I) -> Trying<T, E> + Send>;

/// An input, and whoever waits for what comes of it.
pub(super) struct Job<I, T, E> {
    pub(super) input: I,
    pub(super) promise: Promise<T, E>,
}

/// Wherever a job is dropped before it was done, whoever waits for it is told.
pub(super) struct Promise<T, E>(pub(super) Arc<Slot<T, E>>);

impl<T, E> Drop for Promise<T, E> {
    fn drop(&mut self) {
        self.0.finish(Err(JobError::Lost));
    }
}

/// How a worker is after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Well,
    /// The job panicked, and may have left anything behind.
    Shaken,
}

enum Outcome<R> {
    Done(R),
    Panicked(String),
    CalledOff,
}

/// Does a job, as often as it takes.
pub(super) async fn run<I: Clone, T, E>(
    job: Job<I, T, E>,
    worker: &Worker,
    doing: &mut Doing<I, T, E>,
    retry: &Retry<T, E>,
    clock: &Clock,
) -> Health {
    let slot = &job.promise.0;
    let mut tries = 0;
    loop {
        tries += 1;
        worker.begin_try(tries);
        let input = job.input.clone();
        let verdict = match attempt(slot, || doing(worker, input)).await {
            Outcome::Done(result) => caught(|| retry.judge(tries, result)),
            Outcome::Panicked(why) => Err(why),
            Outcome::CalledOff => return Health::Well,
        };
        match verdict {
            Ok(Verdict::Keep(result)) => slot.finish(result.map_err(JobError::Failed)),
            Ok(Verdict::Invalid) => slot.finish(Err(JobError::Invalid(tries))),
            Ok(Verdict::Again) => {
                let length = Span::covering(retry.next_pause(tries));
                match attempt(slot, || Box::pin(pause(clock, length))).await {
                    Outcome::Done(()) => continue,
                    _ => return Health::Well,
                }
            }
            Err(why) => {
                slot.finish(Err(JobError::Panicked(why)));
                return Health::Shaken;
            }
        }
        return Health::Well;
    }
}

/// Runs what `begin` begins, unless whoever waits for it calls it off first. A panic is an outcome.
async fn attempt<'f, T, E, R>(
    slot: &Slot<T, E>,
    begin: impl FnOnce() -> Pin<Box<dyn Future<Output = R> + Send + 'f>>,
) -> Outcome<R> {
    if slot.is_over() {
        return Outcome::CalledOff;
    }
    let mut future = match caught(begin) {
        Ok(future) => future,
        Err(why) => return Outcome::Panicked(why),
    };
    let outcome = poll_fn(|context| {
        if slot.is_called_off(context.waker()) {
            return Poll::Ready(Outcome::CalledOff);
        }
        match caught(|| future.as_mut().poll(context)) {
            Ok(poll) => poll.map(Outcome::Done),
            Err(why) => Poll::Ready(Outcome::Panicked(why)),
        }
    })
    .await;
    // What it holds is given back before anything else happens; that, too, may panic.
    match caught(|| drop(future)) {
        Ok(()) => outcome,
        Err(why) => Outcome::Panicked(why),
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
