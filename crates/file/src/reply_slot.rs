//! The reply to a job: a slot that passes one answer from the executor to the caller.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate_store::{Mutex, StoreError, may_block};

use crate::commit_queue::{CommitQueue, DetachedCount, QUEUE_MAX};
use crate::job::{Job, JobAnswer, Work};

/// The answer to a job, which is queued when this is first polled.
///
/// # Cancel safety
///
/// If it is dropped before it was answered, the work is not done, or is undone; unless it is [owed](Work::is_owed).
pub(crate) struct PendingReply<'a> {
    queue: &'a CommitQueue,
    stage: ReplyStage,
}

enum ReplyStage {
    New(Work),
    Queued(Arc<ReplySlot>),
    Over,
}

/// Passes the answer from the executor to the caller.
pub(crate) struct ReplySlot {
    state: Mutex<SlotState>,
    is_owed: bool,
}

enum SlotState {
    Waiting(Option<Waker>),
    /// The job runs, and cannot be cancelled.
    Running(Option<Waker>),
    Answered(JobAnswer, Work),
    /// The caller got its answer, or has gone before the job was begun.
    Over,
    /// The caller has gone, and the job is done without it.
    Abandoned(DetachedCount),
}

impl<'a> PendingReply<'a> {
    pub(crate) fn new(queue: &'a CommitQueue, work: Work) -> PendingReply<'a> {
        PendingReply { queue, stage: ReplyStage::New(work) }
    }

    fn submit(&self, work: Work) -> Result<Arc<ReplySlot>, StoreError> {
        let slot =
            Arc::new(ReplySlot { state: Mutex::new(SlotState::Waiting(None)), is_owed: work.is_owed() });
        if !self.queue.push(Job::new(work, self.queue.now(), Arc::clone(&slot))) {
            let why = format!("{QUEUE_MAX} calls are queued already; slow down");
            return Err(StoreError::Unavailable(Duration::ZERO, why));
        }
        if may_block() {
            self.queue.try_run();
        } else {
            self.queue.wake_thread();
        }
        Ok(slot)
    }
}

impl Future for PendingReply<'_> {
    type Output = JobAnswer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<JobAnswer> {
        let slot = match std::mem::replace(&mut self.stage, ReplyStage::Over) {
            ReplyStage::Queued(slot) => slot,
            ReplyStage::New(work) => match self.submit(work) {
                Ok(slot) => slot,
                Err(why) => return Poll::Ready(Err(why.into())),
            },
            ReplyStage::Over => panic!("a reply was polled after it was ready"),
        };
        let answer = slot.poll(context.waker());
        if answer.is_pending() {
            self.stage = ReplyStage::Queued(slot);
        }
        answer
    }
}

impl Drop for PendingReply<'_> {
    fn drop(&mut self) {
        let ReplyStage::Queued(slot) = &self.stage else { return };
        if let Some((answer, work)) = slot.abandon(|| self.queue.count_detached())
            && let Some(undo) = work.undo(answer)
        {
            let count = self.queue.count_detached();
            self.queue.push_front(Job::detached(undo, self.queue.now(), count, None));
        }
    }
}

impl ReplySlot {
    fn poll(&self, waker: &Waker) -> Poll<JobAnswer> {
        // Dropped when the lock is free: the last waker of a task may drop anything.
        let _replaced;
        let mut state = self.state.lock();
        match &mut *state {
            SlotState::Waiting(registered) | SlotState::Running(registered) => {
                if !registered.as_ref().is_some_and(|registered| registered.will_wake(waker)) {
                    _replaced = registered.replace(waker.clone());
                }
                Poll::Pending
            }
            _ => match std::mem::replace(&mut *state, SlotState::Over) {
                SlotState::Answered(answer, _) => Poll::Ready(answer),
                _ => panic!("a reply was polled after it was ready"),
            },
        }
    }

    /// Records that the caller goes. If it was answered already, returns the answer and the work, to be undone.
    fn abandon(&self, count: impl FnOnce() -> DetachedCount) -> Option<(JobAnswer, Work)> {
        let left = {
            let mut state = self.state.lock();
            let next = match &*state {
                SlotState::Running(_) => SlotState::Abandoned(count()),
                SlotState::Waiting(_) if self.is_owed => SlotState::Abandoned(count()),
                _ => SlotState::Over,
            };
            std::mem::replace(&mut *state, next)
        };
        match left {
            SlotState::Answered(answer, work) => Some((answer, work)),
            _ => None,
        }
    }

    /// Returns whether the job is still wanted. From then on it cannot be cancelled.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        match &mut *state {
            SlotState::Waiting(waker) => {
                *state = SlotState::Running(waker.take());
                true
            }
            // A job that is tried again.
            SlotState::Running(_) | SlotState::Abandoned(_) => true,
            SlotState::Answered(..) | SlotState::Over => false,
        }
    }

    /// Answers the caller, whose waker is added to `wakers`. If the caller has gone, returns what undoes the work.
    pub(crate) fn answer(
        &self,
        answer: JobAnswer,
        work: Work,
        wakers: &mut Vec<Waker>,
    ) -> Option<(Work, DetachedCount)> {
        let left = {
            let mut state = self.state.lock();
            match &mut *state {
                SlotState::Waiting(waker) | SlotState::Running(waker) => {
                    wakers.extend(waker.take());
                    *state = SlotState::Answered(answer, work);
                    return None;
                }
                _ => std::mem::replace(&mut *state, SlotState::Over),
            }
        };
        let SlotState::Abandoned(count) = left else { return None };
        work.undo(answer).map(|undo| (undo, count))
    }
}
