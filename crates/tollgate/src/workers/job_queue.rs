//! The line in front of a worker: bounded, first come first served, inside and outside.
//!
//! Whoever finds it full stands outside with its job. When there is room again, the job of the first outside is taken in
//! by whoever made the room: the grant is the commit, so nobody is overtaken and nobody looks in vain.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate_store::Mutex;

/// A line of jobs.
pub(super) struct JobQueue<J> {
    line: Mutex<QueuedJob<J>>,
    queue_max: usize,
    choose_idle: ChooseIdle,
}

/// Which of several idle workers gets the next job: from their numbers, of which there is at least one, to a place among
/// them.
pub(super) type ChooseIdle = Box<dyn Fn(&[usize]) -> usize + Send + Sync>;

struct QueuedJob<J> {
    jobs: VecDeque<J>,
    outside: VecDeque<Arc<Spot<J>>>,
    /// The workers that wait for a job, by their numbers.
    idle: Vec<(usize, Waker)>,
    is_closed: bool,
    /// How many workers may be made for a job, where they are made on demand.
    free: usize,
}

/// One who stands outside, with its job until that was taken in.
struct Spot<J>(Mutex<(Option<J>, Option<Waker>)>);

/// What became of a job that was offered.
pub(super) enum PushOutcome<J> {
    /// It is in the line.
    Queued,
    /// Somebody is to be made for it.
    Start(J),
    /// There is no room.
    Full(J),
    /// There never will be.
    Closed(J),
}

/// Why a job did not get in.
pub(super) struct Rejected<J>(pub(super) J);

impl<J> JobQueue<J> {
    /// A line of at most `queue_max`, in front of one worker or several, or of `free` workers that are made on demand.
    pub(super) fn new(queue_max: usize, free: usize, choose_idle: ChooseIdle) -> JobQueue<J> {
        let (jobs, outside, idle) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let line = Mutex::new(QueuedJob { jobs, outside, idle, is_closed: false, free });
        JobQueue { line, queue_max, choose_idle }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.line.lock().is_closed
    }

    /// How many jobs are in the line.
    pub(super) fn len(&self) -> usize {
        self.line.lock().jobs.len()
    }

    /// Puts a job into the line, if there is room.
    pub(super) fn offer(&self, job: J) -> PushOutcome<J> {
        let waker = {
            let mut line = self.line.lock();
            if line.is_closed {
                return PushOutcome::Closed(job);
            }
            if line.free > 0 {
                line.free -= 1;
                return PushOutcome::Start(job);
            }
            if line.jobs.len() >= self.queue_max || !line.outside.is_empty() {
                return PushOutcome::Full(job);
            }
            line.jobs.push_back(job);
            line.take_idle(&self.choose_idle)
        };
        waker.into_iter().for_each(Waker::wake);
        PushOutcome::Queued
    }

    /// The next job for a worker; `None` when the line is closed and empty.
    pub(super) async fn next(&self, worker: usize) -> Option<J> {
        poll_fn(|context| self.poll_next(worker, context)).await
    }

    fn poll_next(&self, worker: usize, context: &mut Context<'_>) -> Poll<Option<J>> {
        // Dropped when the lock is free: a waker may do anything.
        let (next, _replaced, wakers) = {
            let mut line = self.line.lock();
            let place = line.idle.iter().position(|(idle, _)| *idle == worker);
            let replaced = place.map(|place| line.idle.swap_remove(place));
            match line.jobs.pop_front() {
                Some(job) => {
                    let entered = line.admit_waiting(self.queue_max);
                    // A job that was let in may be one more than there are workers awake.
                    let idle = (!line.jobs.is_empty()).then(|| line.take_idle(&self.choose_idle)).flatten();
                    (Poll::Ready(Some(job)), replaced, [entered, idle])
                }
                None if line.is_closed => (Poll::Ready(None), replaced, [None, None]),
                None => {
                    line.idle.push((worker, context.waker().clone()));
                    (Poll::Pending, replaced, [None, None])
                }
            }
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
        next
    }

    /// The next job for a worker that is made on demand, by one that has done its own; without one, another may be made.
    pub(super) fn next_or_free(&self) -> Option<J> {
        let (job, entered) = {
            let mut line = self.line.lock();
            let job = line.jobs.pop_front();
            if job.is_none() {
                line.free += 1;
            }
            (job, line.admit_waiting(self.queue_max))
        };
        entered.into_iter().for_each(Waker::wake);
        job
    }

    /// Wakes an idle worker if there is a job for it: one that was woken before has died.
    pub(super) fn rouse(&self) {
        let waker = {
            let mut line = self.line.lock();
            (!line.jobs.is_empty()).then(|| line.take_idle(&self.choose_idle)).flatten()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Lets nobody in any more. Those in the line stay.
    pub(super) fn close(&self) {
        let wakers: Vec<Waker> = {
            let mut line = self.line.lock();
            line.is_closed = true;
            let outside = std::mem::take(&mut line.outside);
            let wakers = outside.iter().filter_map(|spot| spot.0.lock().1.take());
            let idle = std::mem::take(&mut line.idle);
            wakers.chain(idle.into_iter().map(|(_, waker)| waker)).collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes all jobs out of the line.
    pub(super) fn clear(&self) -> VecDeque<J> {
        std::mem::take(&mut self.line.lock().jobs)
    }

    /// Gets a job into the line, waiting for room.
    ///
    /// # Cancel safety
    ///
    /// Dropping it takes the job along, unless it is in the line already.
    pub(super) fn enter(&self, job: J) -> Entering<'_, J> {
        Entering { desk: self, stage: PushStage::New(job) }
    }
}

impl<J> QueuedJob<J> {
    /// Whom to wake for a job, of the workers that wait for one.
    fn take_idle(&mut self, choose: &ChooseIdle) -> Option<Waker> {
        let place = match self.idle.len() {
            0 => return None,
            1 => 0,
            idle => {
                let numbers: Vec<usize> = self.idle.iter().map(|(worker, _)| *worker).collect();
                choose(&numbers).min(idle - 1)
            }
        };
        Some(self.idle.swap_remove(place).1)
    }

    /// Takes in the job of the first outside if there is room, and answers whom to wake.
    fn admit_waiting(&mut self, queue_max: usize) -> Option<Waker> {
        if self.jobs.len() >= queue_max {
            return None;
        }
        let spot = self.outside.pop_front()?;
        let mut spot = spot.0.lock();
        self.jobs.extend(spot.0.take());
        spot.1.take()
    }
}

/// One who wants to get a job into a line. Answers the job if somebody is to be made for it.
pub(super) struct Entering<'a, J> {
    desk: &'a JobQueue<J>,
    stage: PushStage<J>,
}

enum PushStage<J> {
    New(J),
    Outside(Arc<Spot<J>>),
    Over,
}

impl<J> Unpin for Entering<'_, J> {}

impl<J> Future for Entering<'_, J> {
    type Output = Result<Option<J>, Rejected<J>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match std::mem::replace(&mut self.stage, PushStage::Over) {
            PushStage::New(job) => match self.desk.offer(job) {
                PushOutcome::Queued => Poll::Ready(Ok(None)),
                PushOutcome::Start(job) => Poll::Ready(Ok(Some(job))),
                PushOutcome::Closed(job) => Poll::Ready(Err(Rejected(job))),
                PushOutcome::Full(job) => self.stand_outside(job, context),
            },
            PushStage::Outside(spot) => self.next_poll(spot, context),
            PushStage::Over => panic!("a job enters once"),
        }
    }
}

impl<J> Entering<'_, J> {
    fn stand_outside(&mut self, job: J, context: &mut Context<'_>) -> Poll<Result<Option<J>, Rejected<J>>> {
        let mut line = self.desk.line.lock();
        // Room may have been made since it was offered, and nobody would tell.
        let has_room = line.free > 0 || line.jobs.len() < self.desk.queue_max && line.outside.is_empty();
        if line.is_closed || has_room {
            self.stage = PushStage::New(job);
            drop(line);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let spot = Arc::new(Spot(Mutex::new((Some(job), Some(context.waker().clone())))));
        line.outside.push_back(Arc::clone(&spot));
        self.stage = PushStage::Outside(spot);
        Poll::Pending
    }

    fn next_poll(
        &mut self,
        spot: Arc<Spot<J>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<J>, Rejected<J>>> {
        let is_closed = self.desk.is_closed();
        let _replaced;
        let mut held = spot.0.lock();
        if held.0.is_none() {
            return Poll::Ready(Ok(None));
        }
        if let Some(job) = held.0.take_if(|_| is_closed) {
            return Poll::Ready(Err(Rejected(job)));
        }
        _replaced = held.1.replace(context.waker().clone());
        drop(held);
        self.stage = PushStage::Outside(spot);
        Poll::Pending
    }
}

impl<J> Drop for Entering<'_, J> {
    fn drop(&mut self) {
        let PushStage::Outside(spot) = &self.stage else { return };
        // Dropped when no lock is held.
        let _job;
        let mut line = self.desk.line.lock();
        line.outside.retain(|other| !Arc::ptr_eq(other, spot));
        _job = spot.0.lock().0.take();
        drop(line);
    }
}
