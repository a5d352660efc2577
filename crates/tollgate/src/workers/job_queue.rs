//! The queue in front of a worker: bounded, first come first served, for queued jobs and for waiters outside.
//!
//! A caller that finds it full waits outside with its job. When a place is free again, the worker that freed it takes
//! in the job of the first waiter: the grant is the commit, so no waiter is overtaken and no notified waiter finds the
//! place taken.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate_store::Mutex;

/// A queue of jobs.
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

/// A waiter outside the queue, with its job until that was taken in.
struct Spot<J>(Mutex<(Option<J>, Option<Waker>)>);

/// What became of a job that was offered.
pub(super) enum PushOutcome<J> {
    /// It is in the queue.
    Queued,
    /// The caller must start a worker for it.
    Start(J),
    /// The queue is full.
    Full(J),
    /// The queue is closed.
    Closed(J),
}

/// Why a job did not get in.
pub(super) struct Rejected<J>(pub(super) J);

impl<J> JobQueue<J> {
    /// A queue of at most `queue_max` jobs, in front of one worker or several, or of `free` workers that are made on
    /// demand.
    pub(super) fn new(queue_max: usize, free: usize, choose_idle: ChooseIdle) -> JobQueue<J> {
        let (jobs, outside, idle) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let line = Mutex::new(QueuedJob { jobs, outside, idle, is_closed: false, free });
        JobQueue { line, queue_max, choose_idle }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.line.lock().is_closed
    }

    /// How many jobs are in the queue.
    pub(super) fn len(&self) -> usize {
        self.line.lock().jobs.len()
    }

    /// Puts a job into the queue, unless it is full.
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

    /// Returns the next job for a worker; `None` when the queue is closed and empty.
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

    /// Accepts no more jobs. Those in the queue stay.
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

    /// Takes all jobs out of the queue.
    pub(super) fn clear(&self) -> VecDeque<J> {
        std::mem::take(&mut self.line.lock().jobs)
    }

    /// Gets a job into the queue, waiting while it is full.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the job, unless that is in the queue already.
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

    /// Takes in the job of the first waiter outside unless the queue is full, and returns the waker of that waiter.
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

/// A caller that gets a job into a queue. Returns the job if the caller must start a worker for it.
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
        // A place may have been freed since the job was offered, and that would not notify this waiter.
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
