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
use tollgate_store::{Clock, Condvar, Freed, Mutex, MutexGuard, NoFork, StoreError, WaitQueues};

use crate::error::TxnError;

/// How many jobs may be queued.
pub(crate) const LINE_MAX: usize = 100_000;

/// How many jobs run together make a crowd.
const CROWD: usize = 4;

/// The backoff before the queue retries detached jobs that failed.
const REST: Span = Span::from_millis(100);

/// How often it retries them once the queue is closing.
const LAST_TRIES: u32 = 3;

/// Runs jobs.
pub(crate) trait Executor: Sized + Send + 'static {
    /// How many jobs run together at most.
    const TOGETHER_MAX: usize;

    /// What a job is given to work with.
    type Tools<'a>;

    /// Runs jobs and finishes each of them.
    fn serve(&mut self, errands: Vec<Box<dyn Job<Self>>>, after: &mut FollowUp<Self>);

    /// The connection that it works with, when it is done with everything else.
    fn into_connection(self) -> Connection;
}

/// Something to be done by an executor.
pub(crate) trait Job<E: Executor>: Send {
    /// When it was posted, by the time of the system.
    fn since(&self) -> Tick;

    /// It has failed, and is tried again from `now` on.
    fn try_again(&mut self, now: Tick) {
        let _ = now;
    }

    /// Whether it is still wanted. From then on it cannot be called off any more, only be undone.
    fn begin(&mut self) -> bool;

    /// Does it.
    fn run(&mut self, tools: &mut E::Tools<'_>) -> Result<(), TxnError>;

    /// What it did holds, or failed with all the others and did not happen.
    fn finish(self: Box<Self>, outcome: Result<(), &StoreError>, after: &mut FollowUp<E>);
}

/// What is to be done once jobs were run.
pub(crate) struct FollowUp<E> {
    /// What to wake when the executor is free: a waker may do anything.
    pub(crate) wakers: Vec<Waker>,
    /// What comes before all others.
    pub(crate) first: Vec<Box<dyn Job<E>>>,
    /// What comes after all others.
    pub(crate) last: Vec<Box<dyn Job<E>>>,
    /// What failed, and is tried again a little later.
    pub(crate) failed: Vec<Box<dyn Job<E>>>,
    /// Limits that have more room now.
    pub(crate) freed: Vec<Freed>,
}

impl<E> Default for FollowUp<E> {
    fn default() -> FollowUp<E> {
        FollowUp {
            wakers: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
            failed: Vec::new(),
            freed: Vec::new(),
        }
    }
}

/// Queued jobs, and the executor that runs them.
pub(crate) struct CommitQueue<E: Executor> {
    line: Mutex<QueuedJobs<E>>,
    bell: Condvar,
    /// Until it is dismissed. Locked only to run jobs: a caller that finds it locked leaves its job to the thread that
    /// has it.
    engine: Mutex<Option<E>>,
    is_dismissed: AtomicBool,
    unheard: Arc<AtomicUsize>,
    /// Whether many jobs ran together the last time.
    is_crowded: AtomicBool,
    wait_queues: Arc<WaitQueues>,
    /// The time of the system, whatever the store's clock.
    clock: Clock,
}

struct QueuedJobs<E> {
    errands: VecDeque<Box<dyn Job<E>>>,
    /// Detached jobs that failed. They are kept apart for a while: they might make others fail with them.
    failed: Vec<Box<dyn Job<E>>>,
    /// When they are retried.
    due: Tick,
    asleep: bool,
    /// How often what failed may still be retried, once the queue is closing.
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

impl<E: Executor> CommitQueue<E> {
    pub(crate) fn new(engine: E, wait_queues: Arc<WaitQueues>) -> CommitQueue<E> {
        let (errands, failed) = (VecDeque::new(), Vec::new());
        let line = QueuedJobs { errands, failed, due: Tick::ZERO, asleep: false, closing: None };
        CommitQueue {
            line: Mutex::new(line),
            bell: Condvar::new(),
            engine: Mutex::new(Some(engine)),
            is_dismissed: AtomicBool::new(false),
            unheard: Arc::default(),
            is_crowded: AtomicBool::new(false),
            wait_queues,
            clock: Clock::system(),
        }
    }

    /// Queues a job; gives it back if the queue is full. The caller then [helps](CommitQueue::help) or
    /// [rings](CommitQueue::ring).
    pub(crate) fn post(&self, errand: Box<dyn Job<E>>) -> Result<(), Box<dyn Job<E>>> {
        let mut line = self.line.lock();
        if line.errands.len() >= LINE_MAX {
            return Err(errand);
        }
        line.errands.push_back(errand);
        Ok(())
    }

    /// Queues a job before all others, however long the queue is: it undoes a request whose caller has gone.
    pub(crate) fn post_first(&self, errand: Box<dyn Job<E>>) {
        self.line.lock().errands.push_front(errand);
        self.ring();
    }

    /// Wakes the background thread if jobs are queued and it sleeps.
    pub(crate) fn ring(&self) {
        let line = self.line.lock();
        if line.asleep && !line.errands.is_empty() {
            self.bell.notify_one();
        }
    }

    /// Runs queued jobs on this thread, if the executor is free.
    pub(crate) fn help(&self) {
        if self.is_crowded.load(Ordering::Relaxed) {
            // Callers that were served together are back together. A thread that lets them queue their jobs first runs
            // them all.
            std::thread::yield_now();
        }
        let no_fork = NoFork::begin();
        if let Some(engine) = self.engine.try_lock() {
            self.serve(engine, no_fork);
            self.ring();
        }
    }

    /// Returns the time of the system, by which jobs wait.
    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Counts a detached job.
    pub(crate) fn unheard(&self) -> DetachedCount {
        self.unheard.fetch_add(1, Ordering::Acquire);
        DetachedCount(Arc::clone(&self.unheard))
    }

    /// Returns whether detached jobs are pending, so that a caller that reads now might not see what they write.
    pub(crate) fn has_unheard(&self) -> bool {
        self.unheard.load(Ordering::Acquire) > 0
    }

    /// Runs the background thread: it runs jobs until the queue is closed and empty.
    pub(crate) fn keep(&self) {
        while self.wait_for_errands() {
            // A panic has answered the requests it hit. The others, and later ones, still have to be run.
            let serve = || {
                let no_fork = NoFork::begin();
                self.serve(self.engine.lock(), no_fork);
            };
            let _ = catch_unwind(AssertUnwindSafe(serve));
        }
    }

    /// Lets the thread end once the queue is empty.
    pub(crate) fn close(&self) {
        self.line.lock().closing = Some(LAST_TRIES);
        self.bell.notify_all();
    }

    /// Returns whether the executor has not been dismissed.
    pub(crate) fn has_engine(&self) -> bool {
        !self.is_dismissed.load(Ordering::Acquire)
    }

    /// Drops the executor, once no job can come any more.
    pub(crate) fn dismiss(&self) {
        drop(self.engine.lock().take());
        self.is_dismissed.store(true, Ordering::Release);
    }

    /// Takes the connection of the process that this one was forked off from; nothing if it has none any more.
    ///
    /// # Errors
    ///
    /// [`ForeignThread`] if one of its threads was using it at that moment.
    pub(crate) fn inherit(&self) -> Result<Option<Connection>, ForeignThread> {
        let mut engine = self.engine.try_lock().ok_or(ForeignThread)?;
        self.is_dismissed.store(true, Ordering::Release);
        Ok(engine.take().map(E::into_connection))
    }

    fn wait_for_errands(&self) -> bool {
        let mut line = self.line.lock();
        loop {
            let now = self.clock.now();
            if line.closing.is_some() || now >= line.due {
                line.try_failed_again(now);
            }
            if !line.errands.is_empty() {
                return true;
            }
            let (has_failed, rest) = (!line.failed.is_empty(), line.due.since(now).to_duration());
            if line.closing.is_some() {
                return false;
            }
            line.asleep = true;
            if has_failed {
                self.bell.wait_for(&mut line, rest);
            } else {
                self.bell.wait(&mut line);
            }
            line.asleep = false;
        }
    }

    fn serve(&self, mut engine: MutexGuard<'_, Option<E>>, no_fork: NoFork) {
        let Some(serving) = engine.as_mut() else { return };
        let errands: Vec<_> = {
            let mut line = self.line.lock();
            let together = line.errands.len().min(E::TOGETHER_MAX);
            line.errands.drain(..together).collect()
        };
        if errands.is_empty() {
            return;
        }
        self.is_crowded.store(errands.len() >= CROWD, Ordering::Relaxed);
        let mut after = FollowUp::default();
        serving.serve(errands, &mut after);
        // While the executor is not free, so that no job runs between what was done and what undoes it.
        self.put_back(&mut after);
        drop(engine);
        drop(no_fork);
        after.wakers.into_iter().for_each(Waker::wake);
        after.freed.iter().for_each(|freed| self.wait_queues.notify(freed));
    }

    fn put_back(&self, after: &mut FollowUp<E>) {
        if after.first.is_empty() && after.last.is_empty() && after.failed.is_empty() {
            return;
        }
        let mut line = self.line.lock();
        for errand in after.first.drain(..).rev() {
            line.errands.push_front(errand);
        }
        line.errands.extend(after.last.drain(..));
        if after.failed.is_empty() {
            return;
        }
        match &mut line.closing {
            Some(0) => after.failed.clear(),
            Some(tries) => *tries -= 1,
            None => {}
        }
        line.failed.append(&mut after.failed);
        line.due = self.clock.now() + REST;
    }
}

impl<E: Executor> QueuedJobs<E> {
    fn try_failed_again(&mut self, now: Tick) {
        for mut errand in std::mem::take(&mut self.failed).into_iter().rev() {
            errand.try_again(now);
            self.errands.push_front(errand);
        }
    }
}
