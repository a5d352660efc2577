//! A commit queue: jobs are queued, and the thread that holds the executor runs all of them together.
//!
//! The queue has a background thread for detached jobs and for those that tasks wait for. A thread that waits may as
//! well do the work: it queues its job and, if the executor is free, runs the queued jobs itself. So a lone caller
//! never pays for being woken, and the first of many callers runs the jobs of all, many at a time.
//!
//! Why no job is left behind: a thread that releases the executor looks at the queue afterwards, and notifies the
//! background thread if a job is there. A job that found the executor taken had joined the queue before that.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use rusqlite::Connection;
use tollgate_core::{Span, Tick};
use tollgate_store::{
    Clock, Condvar, Freed, Mutex, MutexGuard, NoFork, OutcomeCallback, TxnOutcome, WaitQueues,
};

use crate::job::Job;

/// How many jobs may be queued.
pub(crate) const QUEUE_MAX: usize = 100_000;

/// How many jobs that ran together make a crowd.
const CROWD: usize = 4;

/// The backoff before the queue retries detached jobs that failed.
const RETRY_AFTER: Span = Span::from_millis(100);

/// How often it retries them once the queue is closing.
const LAST_TRIES: u32 = 3;

/// Runs jobs on a connection.
pub(crate) trait Executor: Send {
    /// Returns how many jobs run together at most.
    fn batch_max(&self) -> usize;

    /// Runs jobs and finishes each of them.
    fn run(&mut self, jobs: Vec<Job>, follow_up: &mut FollowUp);

    /// Returns the connection, and drops everything else.
    fn into_connection(self: Box<Self>) -> Connection;
}

/// What is to be done once jobs were run.
#[derive(Default)]
pub(crate) struct FollowUp {
    /// Called when the executor is free: a waker may do anything.
    pub(crate) wakers: Vec<Waker>,
    /// Called with their outcomes when the executor is free, like wakers.
    pub(crate) callbacks: Vec<(OutcomeCallback, TxnOutcome)>,
    /// Jobs that run before all others.
    pub(crate) first: Vec<Job>,
    /// Detached jobs that failed, to be retried after a while.
    pub(crate) failed: Vec<Job>,
    /// Limits that have more room now.
    pub(crate) freed: Vec<Freed>,
}

/// Queued jobs, and the executor that runs them.
pub(crate) struct CommitQueue {
    queued: Mutex<QueuedJobs>,
    /// Wakes the background thread.
    wake: Condvar,
    /// Until it is dropped. Locked only to run jobs: a caller that finds it locked leaves its job to the thread that has
    /// it.
    executor: Mutex<Option<Box<dyn Executor>>>,
    is_stopped: AtomicBool,
    detached: Arc<AtomicUsize>,
    /// Whether many jobs ran together the last time.
    is_crowded: AtomicBool,
    wait_queues: Arc<WaitQueues>,
    /// The time of the system, whatever the store's clock.
    clock: Clock,
}

#[derive(Default)]
struct QueuedJobs {
    jobs: VecDeque<Job>,
    /// Detached jobs that failed. They are kept apart for a while: they might make others fail with them.
    failed: Vec<Job>,
    /// When they are retried.
    retry_at: Tick,
    is_thread_asleep: bool,
    /// How often failed jobs may still be retried, once the queue is closing.
    closing: Option<u32>,
}

/// A thread that is not in this process uses the executor, for ever.
#[derive(Debug)]
pub(crate) struct ForeignThread;

/// Counts a detached job, until it is dropped.
pub(crate) struct DetachedCount(Arc<AtomicUsize>);

impl Drop for DetachedCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl CommitQueue {
    pub(crate) fn new(executor: Box<dyn Executor>, wait_queues: Arc<WaitQueues>) -> CommitQueue {
        CommitQueue {
            queued: Mutex::default(),
            wake: Condvar::new(),
            executor: Mutex::new(Some(executor)),
            is_stopped: AtomicBool::new(false),
            detached: Arc::default(),
            is_crowded: AtomicBool::new(false),
            wait_queues,
            clock: Clock::system(),
        }
    }

    /// Queues a job, and returns whether there was room for it; one for which there is none is dropped. The caller then
    /// [runs](CommitQueue::try_run) the queue or [wakes](CommitQueue::wake_thread) its thread.
    pub(crate) fn push(&self, job: Job) -> bool {
        // The lock is free again before a job that was not queued is dropped: its callback may do anything.
        let mut queued = self.queued.lock();
        let has_room = queued.jobs.len() < QUEUE_MAX;
        if has_room {
            queued.jobs.push_back(job);
        }
        has_room
    }

    /// Queues a job before all others, however long the queue is: it undoes one whose caller has gone.
    pub(crate) fn push_front(&self, job: Job) {
        self.queued.lock().jobs.push_front(job);
        self.wake_thread();
    }

    /// Wakes the background thread if jobs are queued and it sleeps.
    pub(crate) fn wake_thread(&self) {
        let queued = self.queued.lock();
        if queued.is_thread_asleep && !queued.jobs.is_empty() {
            self.wake.notify_one();
        }
    }

    /// Runs queued jobs on this thread, if the executor is free.
    pub(crate) fn try_run(&self) {
        if self.is_crowded.load(Ordering::Relaxed) {
            // Callers that were served together are back together. A thread that lets them queue their jobs first runs
            // them all.
            std::thread::yield_now();
        }
        let no_fork = NoFork::begin();
        if let Some(executor) = self.executor.try_lock() {
            self.run(executor, no_fork);
            self.wake_thread();
        }
    }

    /// Returns the time of the system, by which jobs wait.
    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Counts a detached job.
    pub(crate) fn count_detached(&self) -> DetachedCount {
        self.detached.fetch_add(1, Ordering::Acquire);
        DetachedCount(Arc::clone(&self.detached))
    }

    /// Returns whether detached jobs are pending, so that a caller that reads now might not see what they write.
    pub(crate) fn has_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire) > 0
    }

    /// Runs the background thread: it runs jobs until the queue is closed and empty.
    pub(crate) fn run_thread(&self) {
        while self.wait_for_jobs() {
            // A panic has answered the callers whose jobs it hit. The others, and later ones, still have to be run.
            let run = || {
                let no_fork = NoFork::begin();
                self.run(self.executor.lock(), no_fork);
            };
            let _ = catch_unwind(AssertUnwindSafe(run));
        }
    }

    /// Lets the thread end once the queue is empty.
    pub(crate) fn close(&self) {
        self.queued.lock().closing = Some(LAST_TRIES);
        self.wake.notify_all();
    }

    /// Returns whether it still has its executor.
    pub(crate) fn has_executor(&self) -> bool {
        !self.is_stopped.load(Ordering::Acquire)
    }

    /// Drops the executor, once no job can come any more.
    pub(crate) fn stop(&self) {
        drop(self.executor.lock().take());
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Takes the connection of the process that this one was forked off from; `None` if it has none any more.
    ///
    /// # Errors
    ///
    /// [`ForeignThread`] if one of its threads was using it at that moment.
    pub(crate) fn inherit(&self) -> Result<Option<Connection>, ForeignThread> {
        let mut executor = self.executor.try_lock().ok_or(ForeignThread)?;
        self.is_stopped.store(true, Ordering::Release);
        Ok(executor.take().map(Executor::into_connection))
    }

    fn wait_for_jobs(&self) -> bool {
        let mut queued = self.queued.lock();
        loop {
            let now = self.clock.now();
            if queued.closing.is_some() || now >= queued.retry_at {
                queued.retry_failed(now);
            }
            if !queued.jobs.is_empty() {
                return true;
            }
            if queued.closing.is_some() {
                return false;
            }
            queued.is_thread_asleep = true;
            if queued.failed.is_empty() {
                self.wake.wait(&mut queued);
            } else {
                let rest = queued.retry_at.since(now).to_duration();
                self.wake.wait_for(&mut queued, rest);
            }
            queued.is_thread_asleep = false;
        }
    }

    fn run(&self, mut executor: MutexGuard<'_, Option<Box<dyn Executor>>>, no_fork: NoFork) {
        let Some(running) = executor.as_mut() else { return };
        let jobs = self.queued.lock().next(running.batch_max());
        if jobs.is_empty() {
            return;
        }
        self.is_crowded.store(jobs.len() >= CROWD, Ordering::Relaxed);
        let mut follow_up = FollowUp::default();
        running.run(jobs, &mut follow_up);
        // While the executor is not free, so that no job runs between what was done and what undoes it.
        self.put_back(&mut follow_up);
        drop(executor);
        drop(no_fork);
        follow_up.wakers.into_iter().for_each(Waker::wake);
        follow_up.callbacks.into_iter().for_each(|(callback, outcome)| callback(&outcome));
        follow_up.freed.iter().for_each(|freed| self.wait_queues.notify(freed));
    }

    fn put_back(&self, follow_up: &mut FollowUp) {
        if follow_up.first.is_empty() && follow_up.failed.is_empty() {
            return;
        }
        let mut queued = self.queued.lock();
        for job in follow_up.first.drain(..).rev() {
            queued.jobs.push_front(job);
        }
        if follow_up.failed.is_empty() {
            return;
        }
        match &mut queued.closing {
            Some(0) => follow_up.failed.clear(),
            Some(tries) => *tries -= 1,
            None => {}
        }
        queued.failed.append(&mut follow_up.failed);
        queued.retry_at = self.clock.now() + RETRY_AFTER;
    }
}

impl QueuedJobs {
    /// Takes the next jobs, at most `batch_max`.
    fn next(&mut self, batch_max: usize) -> Vec<Job> {
        let count = self.jobs.len().min(batch_max);
        self.jobs.drain(..count).collect()
    }

    fn retry_failed(&mut self, now: Tick) {
        for mut job in std::mem::take(&mut self.failed).into_iter().rev() {
            job.retry_from(now);
            self.jobs.push_front(job);
        }
    }
}
