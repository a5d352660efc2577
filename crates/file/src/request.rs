//! Requests to a commit queue that a caller waits for, and what becomes of them if the caller goes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_store::{Mutex, StoreError, may_block};

use crate::commit_queue::{CommitQueue, DetachedCount, Executor, FollowUp, Job, LINE_MAX};
use crate::error::TxnError;

/// Something to be done with the tools of an executor, and to be answered.
pub(crate) trait Request<E: Executor>: Sized + Send + 'static {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Does it; `None` if there is more to do, in another transaction. If the transaction fails, it may be run again.
    fn run(&mut self, tools: &mut E::Tools<'_>) -> Result<Option<Self::Answer>, TxnError>;

    /// What was done so far holds, and there is more to do.
    fn go_on(&mut self) {}

    /// Returns whether it is done also if the caller drops the reply, once it was asked for: what ends a lease, say.
    fn is_owed(&self) -> bool {
        false
    }

    /// The answer when it could not be done.
    fn failed(why: StoreError) -> Self::Answer;

    /// Returns the job that undoes what was done, for a caller that dropped the reply.
    fn undo(self, answer: Self::Answer, since: Tick, unheard: DetachedCount) -> Option<Box<dyn Job<E>>> {
        let _ = (answer, since, unheard);
        None
    }
}

/// The answer to some work. It is asked for when it is first polled.
///
/// # Cancel safety
///
/// Dropped before it was answered, the work is not done, or undone; unless it is [owed](Request::is_owed).
pub(crate) struct PendingReply<'a, E: Executor, W: Request<E>> {
    desk: &'a CommitQueue<E>,
    stage: RequestStage<E, W>,
}

enum RequestStage<E: Executor, W: Request<E>> {
    New(W),
    Posted(Arc<ReplySlot<E, W>>),
    Over,
}

/// Passes the answer from the executor to the caller.
struct ReplySlot<E: Executor, W: Request<E>> {
    meeting: Mutex<SlotState<E, W>>,
    is_owed: bool,
}

enum SlotState<E: Executor, W: Request<E>> {
    Waiting(Option<Waker>),
    /// It is being done, and cannot be called off.
    Running(Option<Waker>),
    Answered(W::Answer, W),
    /// The caller has gone, before it was begun or after it was answered.
    Over,
    /// The caller has gone while it was being done.
    Abandoned(DetachedCount),
}

struct QueuedRequest<E: Executor, W: Request<E>> {
    since: Tick,
    work: Option<W>,
    answer: Option<W::Answer>,
    slot: Arc<ReplySlot<E, W>>,
}

impl<'a, E: Executor, W: Request<E>> PendingReply<'a, E, W> {
    pub(crate) fn new(desk: &'a CommitQueue<E>, work: W) -> PendingReply<'a, E, W> {
        PendingReply { desk, stage: RequestStage::New(work) }
    }

    fn post(&self, work: W) -> Result<Arc<ReplySlot<E, W>>, StoreError> {
        let (meeting, is_owed) = (Mutex::new(SlotState::Waiting(None)), work.is_owed());
        let slot = Arc::new(ReplySlot { meeting, is_owed });
        let since = self.desk.now();
        let posted = QueuedRequest { since, work: Some(work), answer: None, slot: Arc::clone(&slot) };
        if self.desk.post(Box::new(posted)).is_err() {
            let why = format!("{LINE_MAX} calls are queued already; slow down");
            return Err(StoreError::Unavailable(Duration::ZERO, why));
        }
        if may_block() {
            self.desk.help();
        } else {
            self.desk.ring();
        }
        Ok(slot)
    }
}

// Nothing in it is ever pinned.
impl<E: Executor, W: Request<E>> Unpin for PendingReply<'_, E, W> {}

impl<E: Executor, W: Request<E>> Future for PendingReply<'_, E, W> {
    type Output = W::Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<W::Answer> {
        let slot = match std::mem::replace(&mut self.stage, RequestStage::Over) {
            RequestStage::Posted(slot) => slot,
            RequestStage::New(work) => match self.post(work) {
                Ok(slot) => slot,
                Err(why) => return Poll::Ready(W::failed(why)),
            },
            RequestStage::Over => panic!("an answer was asked for after it was given"),
        };
        let answer = slot.poll(context.waker());
        if answer.is_pending() {
            self.stage = RequestStage::Posted(slot);
        }
        answer
    }
}

impl<E: Executor, W: Request<E>> Drop for PendingReply<'_, E, W> {
    fn drop(&mut self) {
        let RequestStage::Posted(slot) = &self.stage else { return };
        if let Some((answer, work)) = slot.leave(|| self.desk.unheard())
            && let Some(undo) = work.undo(answer, self.desk.now(), self.desk.unheard())
        {
            self.desk.post_first(undo);
        }
    }
}

impl<E: Executor, W: Request<E>> ReplySlot<E, W> {
    fn poll(&self, waker: &Waker) -> Poll<W::Answer> {
        // Dropped when the lock is free: the last waker of a task may drop anything.
        let _replaced;
        let mut meeting = self.meeting.lock();
        match &mut *meeting {
            SlotState::Waiting(place) | SlotState::Running(place) => {
                if !place.as_ref().is_some_and(|place| place.will_wake(waker)) {
                    _replaced = place.replace(waker.clone());
                }
                Poll::Pending
            }
            _ => match std::mem::replace(&mut *meeting, SlotState::Over) {
                SlotState::Answered(answer, _) => Poll::Ready(answer),
                _ => panic!("an answer was asked for after it was given"),
            },
        }
    }

    /// Records that the caller goes. If it was answered already, returns the answer, to be undone.
    fn leave(&self, unheard: impl FnOnce() -> DetachedCount) -> Option<(W::Answer, W)> {
        let left = {
            let mut meeting = self.meeting.lock();
            let next = match &*meeting {
                SlotState::Running(_) => SlotState::Abandoned(unheard()),
                SlotState::Waiting(_) if self.is_owed => SlotState::Abandoned(unheard()),
                _ => SlotState::Over,
            };
            std::mem::replace(&mut *meeting, next)
        };
        match left {
            SlotState::Answered(answer, work) => Some((answer, work)),
            _ => None,
        }
    }

    fn begin(&self) -> bool {
        let mut meeting = self.meeting.lock();
        match &mut *meeting {
            SlotState::Waiting(waker) => {
                *meeting = SlotState::Running(waker.take());
                true
            }
            // It is one that goes on.
            SlotState::Running(_) | SlotState::Abandoned(_) => true,
            SlotState::Answered(..) | SlotState::Over => false,
        }
    }

    /// Gives the answer, if the caller is still there.
    fn answer(&self, answer: W::Answer, work: W, since: Tick, after: &mut FollowUp<E>) {
        let left = {
            let mut meeting = self.meeting.lock();
            match &mut *meeting {
                SlotState::Waiting(waker) | SlotState::Running(waker) => {
                    after.wakers.extend(waker.take());
                    *meeting = SlotState::Answered(answer, work);
                    return;
                }
                _ => std::mem::replace(&mut *meeting, SlotState::Over),
            }
        };
        if let SlotState::Abandoned(unheard) = left {
            after.first.extend(work.undo(answer, since, unheard));
        }
    }
}

impl<E: Executor, W: Request<E>> Job<E> for QueuedRequest<E, W> {
    fn since(&self) -> Tick {
        self.since
    }

    fn begin(&mut self) -> bool {
        self.slot.begin()
    }

    fn run(&mut self, tools: &mut E::Tools<'_>) -> Result<(), TxnError> {
        if let Some(work) = &mut self.work {
            self.answer = work.run(tools)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, outcome: Result<(), &StoreError>, after: &mut FollowUp<E>) {
        let answer = match outcome {
            Ok(()) => self.answer.take(),
            Err(why) => Some(W::failed(why.clone())),
        };
        let Some(answer) = answer else {
            self.work.iter_mut().for_each(Request::go_on);
            after.last.push(self);
            return;
        };
        if let Some(work) = self.work.take() {
            self.slot.answer(answer, work, self.since, after);
        }
    }
}

/// Answers with an error: a request that was begun and not finished is one whose executor panicked. So no caller waits
/// for ever.
impl<E: Executor, W: Request<E>> Drop for QueuedRequest<E, W> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let mut after = FollowUp::default();
            let why = StoreError::Refused("a call made the store panic, which is a bug of the store".into());
            self.slot.answer(W::failed(why), work, self.since, &mut after);
            after.wakers.into_iter().for_each(Waker::wake);
        }
    }
}
