//! Work for a desk that somebody waits for, and what becomes of it if nobody does any more.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_store::{Mutex, StoreError, may_block};

use crate::desk::{After, Desk, Engine, Errand, LINE_MAX, Unheard};
use crate::error::Fault;

/// Something to be done with the tools of an engine, and to be answered.
pub(crate) trait Work<E: Engine>: Sized + Send + 'static {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Does it; `None` if there is more to do, in another transaction. If the transaction fails, it may be run again.
    fn run(&mut self, tools: &mut E::Tools<'_>) -> Result<Option<Self::Answer>, Fault>;

    /// What was done so far holds, and there is more to do.
    fn go_on(&mut self) {}

    /// Whether it is done also if nobody stays for the answer, once it was asked for: what ends a lease, say.
    fn is_owed(&self) -> bool {
        false
    }

    /// The answer when it could not be done.
    fn failed(why: StoreError) -> Self::Answer;

    /// What takes back what was done, for one who asked and did not stay for the answer.
    fn undo(self, answer: Self::Answer, since: Tick, unheard: Unheard) -> Option<Box<dyn Errand<E>>> {
        let _ = (answer, since, unheard);
        None
    }
}

/// The answer to some work. It is asked for when it is first polled.
///
/// # Cancel safety
///
/// Dropped before it was answered, the work is not done, or undone; unless it is [owed](Work::is_owed).
pub(crate) struct Pending<'a, E: Engine, W: Work<E>> {
    desk: &'a Desk<E>,
    stage: Stage<E, W>,
}

enum Stage<E: Engine, W: Work<E>> {
    New(W),
    Posted(Arc<Slot<E, W>>),
    Over,
}

/// Where whoever asks and whoever answers meet.
struct Slot<E: Engine, W: Work<E>> {
    meeting: Mutex<Meeting<E, W>>,
    is_owed: bool,
}

enum Meeting<E: Engine, W: Work<E>> {
    Waiting(Option<Waker>),
    /// It is being done, and cannot be called off.
    Running(Option<Waker>),
    Answered(W::Answer, W),
    /// Who asked has gone, before it was begun or after it was answered.
    Over,
    /// Who asked has gone while it was being done.
    Abandoned(Unheard),
}

struct Posted<E: Engine, W: Work<E>> {
    since: Tick,
    work: Option<W>,
    answer: Option<W::Answer>,
    slot: Arc<Slot<E, W>>,
}

impl<'a, E: Engine, W: Work<E>> Pending<'a, E, W> {
    pub(crate) fn new(desk: &'a Desk<E>, work: W) -> Pending<'a, E, W> {
        Pending { desk, stage: Stage::New(work) }
    }

    fn post(&self, work: W) -> Result<Arc<Slot<E, W>>, StoreError> {
        let (meeting, is_owed) = (Mutex::new(Meeting::Waiting(None)), work.is_owed());
        let slot = Arc::new(Slot { meeting, is_owed });
        let since = self.desk.now();
        let posted = Posted { since, work: Some(work), answer: None, slot: Arc::clone(&slot) };
        if self.desk.post(Box::new(posted)).is_err() {
            let why = format!("{LINE_MAX} calls stand in line already; slow down");
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
impl<E: Engine, W: Work<E>> Unpin for Pending<'_, E, W> {}

impl<E: Engine, W: Work<E>> Future for Pending<'_, E, W> {
    type Output = W::Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<W::Answer> {
        let slot = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Posted(slot) => slot,
            Stage::New(work) => match self.post(work) {
                Ok(slot) => slot,
                Err(why) => return Poll::Ready(W::failed(why)),
            },
            Stage::Over => panic!("an answer was asked for after it was given"),
        };
        let answer = slot.poll(context.waker());
        if answer.is_pending() {
            self.stage = Stage::Posted(slot);
        }
        answer
    }
}

impl<E: Engine, W: Work<E>> Drop for Pending<'_, E, W> {
    fn drop(&mut self) {
        let Stage::Posted(slot) = &self.stage else { return };
        if let Some((answer, work)) = slot.leave(|| self.desk.unheard())
            && let Some(undo) = work.undo(answer, self.desk.now(), self.desk.unheard())
        {
            self.desk.post_first(undo);
        }
    }
}

impl<E: Engine, W: Work<E>> Slot<E, W> {
    fn poll(&self, waker: &Waker) -> Poll<W::Answer> {
        // Dropped when the lock is free: the last waker of a task may drop anything.
        let _replaced;
        let mut meeting = self.meeting.lock();
        match &mut *meeting {
            Meeting::Waiting(place) | Meeting::Running(place) => {
                if !place.as_ref().is_some_and(|place| place.will_wake(waker)) {
                    _replaced = place.replace(waker.clone());
                }
                Poll::Pending
            }
            _ => match std::mem::replace(&mut *meeting, Meeting::Over) {
                Meeting::Answered(answer, _) => Poll::Ready(answer),
                _ => panic!("an answer was asked for after it was given"),
            },
        }
    }

    /// Whoever asked goes. If it was answered already, that is given back to be undone.
    fn leave(&self, unheard: impl FnOnce() -> Unheard) -> Option<(W::Answer, W)> {
        let left = {
            let mut meeting = self.meeting.lock();
            let next = match &*meeting {
                Meeting::Running(_) => Meeting::Abandoned(unheard()),
                Meeting::Waiting(_) if self.is_owed => Meeting::Abandoned(unheard()),
                _ => Meeting::Over,
            };
            std::mem::replace(&mut *meeting, next)
        };
        match left {
            Meeting::Answered(answer, work) => Some((answer, work)),
            _ => None,
        }
    }

    fn begin(&self) -> bool {
        let mut meeting = self.meeting.lock();
        match &mut *meeting {
            Meeting::Waiting(waker) => {
                *meeting = Meeting::Running(waker.take());
                true
            }
            // It is one that goes on.
            Meeting::Running(_) | Meeting::Abandoned(_) => true,
            Meeting::Answered(..) | Meeting::Over => false,
        }
    }

    /// Gives the answer, if whoever asked is still there.
    fn answer(&self, answer: W::Answer, work: W, since: Tick, after: &mut After<E>) {
        let left = {
            let mut meeting = self.meeting.lock();
            match &mut *meeting {
                Meeting::Waiting(waker) | Meeting::Running(waker) => {
                    after.wakers.extend(waker.take());
                    *meeting = Meeting::Answered(answer, work);
                    return;
                }
                _ => std::mem::replace(&mut *meeting, Meeting::Over),
            }
        };
        if let Meeting::Abandoned(unheard) = left {
            after.first.extend(work.undo(answer, since, unheard));
        }
    }
}

impl<E: Engine, W: Work<E>> Errand<E> for Posted<E, W> {
    fn since(&self) -> Tick {
        self.since
    }

    fn begin(&mut self) -> bool {
        self.slot.begin()
    }

    fn run(&mut self, tools: &mut E::Tools<'_>) -> Result<(), Fault> {
        if let Some(work) = &mut self.work {
            self.answer = work.run(tools)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, outcome: Result<(), &StoreError>, after: &mut After<E>) {
        let answer = match outcome {
            Ok(()) => self.answer.take(),
            Err(why) => Some(W::failed(why.clone())),
        };
        let Some(answer) = answer else {
            self.work.iter_mut().for_each(Work::go_on);
            after.last.push(self);
            return;
        };
        if let Some(work) = self.work.take() {
            self.slot.answer(answer, work, self.since, after);
        }
    }
}

/// An errand that was begun and not finished is one whose engine panicked. Nobody is left to wait for ever.
impl<E: Engine, W: Work<E>> Drop for Posted<E, W> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let mut after = After::default();
            let why = StoreError::Refused("a call made the store panic, which is a bug of the store".into());
            self.slot.answer(W::failed(why), work, self.since, &mut after);
            after.wakers.into_iter().for_each(Waker::wake);
        }
    }
}
