//! A pool of workers.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use tollgate_store::{Clock, Mutex, Reply};

use super::balance::{Balance, Choice, WorkerCount, WorkerLoad};
use super::builder::{WorkerKind, WorkerPoolBuilder};
use super::handle::{FinishedJob, Handle, JobError, ResultSlot};
use super::job_queue::{JobQueue, PushOutcome, Rejected};
use super::retry::RetryRule;
use super::run::{JobHandler, QueuedInput, ReplyOnDrop, WorkerHealth, caught, run};
use super::spawn::Spawner;
use super::worker::Worker;
use crate::LimitPool;

/// How often a worker may die in a row, with no job done in between, before its queue is closed.
const RESTARTS_MAX: u32 = 8;

type Make<I, T, E> = dyn Fn(&Worker) -> JobHandler<I, T, E> + Send + Sync;

/// Workers that do jobs. See the [module](super).
///
/// Dropping it calls off what was not done, and waits for nothing; [`shutdown`](WorkerPool::shutdown) can do otherwise.
///
/// ```
/// use tollgate::workers::{WorkerPool};
///
/// let pool = WorkerPool::threads(4).build(|_, word: String| Ok::<_, std::fmt::Error>(word.len()))?;
/// let lengths = pool.gather(["one".to_owned(), "three".to_owned()]).wait();
/// assert_eq!(lengths, [Ok(3), Ok(5)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WorkerPool<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static>(
    pub(super) Arc<PoolShared<I, T, E>>,
);

/// What becomes of jobs that are not done when a pool is shut down.
///
/// ```
/// use tollgate::workers::{Shutdown, WorkerPool};
///
/// let pool = WorkerPool::threads(1).build(|_, n: u64| Ok::<_, std::fmt::Error>(n))?;
/// let last = pool.submit(7).wait()?;
/// pool.shutdown(Shutdown::Drain).wait();
/// assert_eq!(last.wait()?, 7, "it was done first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// They are done first.
    Drain,
    /// They are called off.
    Cancel,
}

/// Why a job was not taken. It comes back.
///
/// ```
/// use tollgate::workers::{Shutdown, SubmitError, WorkerPool};
///
/// let pool = WorkerPool::threads(1).build(|_, n: u64| Ok::<_, std::fmt::Error>(n))?;
/// pool.shutdown(Shutdown::Drain).wait();
/// assert!(matches!(pool.try_submit(7), Err(SubmitError::Closed(7))), "the job comes back");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError<I> {
    /// The queue of the worker is full.
    #[error("the queue of the worker is full; wait with submit, or raise its bound")]
    Full(I),
    /// The pool is shut down, or its workers are gone.
    #[error("the pool of workers is shut down")]
    Closed(I),
}

pub(super) struct PoolShared<I, T, E> {
    /// One for each worker, or one for all.
    desks: Vec<JobQueue<QueuedInput<I, T, E>>>,
    /// One for each worker; of those made on demand, one for all.
    loads: Arc<[WorkerCount]>,
    deaths: Vec<AtomicU32>,
    /// How many workers died too often to be replaced.
    lost: AtomicUsize,
    make: Box<Make<I, T, E>>,
    staff: Staff<I>,
    queue_max: usize,
    pub(super) limits: Option<LimitPool>,
    pub(super) retry: RetryRule<T, E>,
    pub(super) clock: Clock,
    pub(super) spawner: Spawner,
    turn: AtomicUsize,
    /// How many workers were made on demand.
    made: AtomicUsize,
    alive: Mutex<Alive<T, E>>,
}

/// The workers that a pool is to have.
pub(super) struct Staff<I> {
    pub(super) count: usize,
    pub(super) on_demand: bool,
    pub(super) choice: Choice<I>,
}

impl<I> Staff<I> {
    /// Returns whether all workers serve one queue, from which each takes a job when it is idle.
    fn shares_line(&self) -> bool {
        !self.on_demand && !self.choice.pins()
    }
}

/// Who is there.
struct Alive<T, E> {
    workers: usize,
    /// What runs, by the number of its worker.
    running: Vec<(usize, Arc<ResultSlot<T, E>>)>,
    /// The waiters to wake when no worker is left.
    wakers: Vec<Waker>,
    cancels: bool,
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> WorkerPool<I, T, E> {
    /// Workers in so many threads.
    pub fn threads(count: usize) -> WorkerPoolBuilder<I, T, E> {
        WorkerPoolBuilder::new(WorkerKind::Threads, count)
    }

    /// Workers in so many tasks of the tokio runtime in which the pool is built.
    #[cfg(feature = "tokio")]
    pub fn tasks(count: usize) -> WorkerPoolBuilder<I, T, E> {
        WorkerPoolBuilder::new(WorkerKind::Tasks, count)
    }

    /// Submits a job, if there is space in the queue of the worker that it is for.
    ///
    /// # Errors
    ///
    /// [`SubmitError`], with the input.
    pub fn try_submit(&self, input: I) -> Result<Handle<T, E>, SubmitError<I>> {
        self.try_submit_as(input, None)
    }

    pub(super) fn try_submit_as(
        &self,
        input: I,
        on_finished: Option<(Arc<FinishedJob>, usize)>,
    ) -> Result<Handle<T, E>, SubmitError<I>> {
        let Some(index) = self.0.choose(&input) else { return Err(SubmitError::Closed(input)) };
        let slot = ResultSlot::new(on_finished);
        let load = self.0.load_of(index);
        match self.0.desks[index].offer(QueuedInput { input, promise: ReplyOnDrop(Arc::clone(&slot)) }) {
            PushOutcome::Full(job) => return Err(SubmitError::Full(job.input)),
            PushOutcome::Closed(job) => return Err(SubmitError::Closed(job.input)),
            PushOutcome::Queued => load.stays(),
            PushOutcome::Start(job) => {
                load.stays();
                PoolShared::start_on_demand(&self.0, job);
            }
        }
        Ok(Handle(slot))
    }

    /// Submits a job, and waits for space in the queue of the worker that it is for, in the order of arrival.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the job, unless that was submitted.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Closed`], with the input.
    pub fn submit(&self, input: I) -> Reply<'_, Result<Handle<T, E>, SubmitError<I>>> {
        self.submit_as(input, None)
    }

    pub(super) fn submit_as(
        &self,
        input: I,
        on_finished: Option<(Arc<FinishedJob>, usize)>,
    ) -> Reply<'_, Result<Handle<T, E>, SubmitError<I>>> {
        Reply::later(async move {
            let Some(index) = self.0.choose(&input) else { return Err(SubmitError::Closed(input)) };
            let slot = ResultSlot::new(on_finished);
            let load = self.0.load_of(index);
            match self.0.desks[index]
                .enter(QueuedInput { input, promise: ReplyOnDrop(Arc::clone(&slot)) })
                .await
            {
                Ok(start) => {
                    load.stays();
                    if let Some(job) = start {
                        PoolShared::start_on_demand(&self.0, job);
                    }
                    Ok(Handle(slot))
                }
                Err(Rejected(job)) => Err(SubmitError::Closed(job.input)),
            }
        })
    }

    /// How many jobs wait in queues.
    pub fn waiting(&self) -> usize {
        self.0.desks.iter().map(JobQueue::len).sum()
    }

    /// How many workers it is to have; made on demand, at most.
    #[allow(clippy::len_without_is_empty, reason = "a pool is never empty")]
    pub fn len(&self) -> usize {
        self.0.staff.count
    }

    /// How many jobs may wait in queues.
    pub fn queue_max(&self) -> usize {
        self.0.queue_max
    }

    /// Whether it takes no more jobs: it was shut down, or its workers died.
    pub fn is_closed(&self) -> bool {
        self.0.desks.iter().all(JobQueue::is_closed)
    }

    /// The limits that those of its workers are made from.
    ///
    /// # Panics
    ///
    /// Never: a pool that was built has limits.
    pub fn limits(&self) -> &LimitPool {
        self.0.limits.as_ref().expect("a pool has limits")
    }

    /// How it stands.
    ///
    /// ```
    /// use tollgate::workers::WorkerPool;
    ///
    /// let pool = WorkerPool::threads(2).build(|_, number: u64| Ok::<_, String>(number))?;
    /// pool.gather(0..10).wait();
    /// let stats = pool.stats();
    /// assert_eq!((stats.waiting, stats.workers.iter().map(|worker| worker.total).sum::<usize>()), (0, 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stats(&self) -> PoolStats {
        let (alive, running) = {
            let alive = self.0.alive.lock();
            (alive.workers, alive.running.len())
        };
        let workers = self.0.loads.iter().enumerate().map(|(index, load)| load.seen(index)).collect();
        PoolStats { alive, running, waiting: self.waiting(), workers }
    }

    /// Takes no more jobs, does or calls off those it has, and waits for its workers to end. May be called again, and by
    /// several; the last word on what was not done yet counts if it is to cancel.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, the pool is closed.
    pub fn shutdown(&self, how: Shutdown) -> Reply<'static, ()> {
        self.0.close(how);
        let shared = Arc::clone(&self.0);
        Reply::later(async move { shared.ended().await })
    }
}

/// How a pool of workers stands.
///
/// ```
/// use tollgate::workers::{WorkerPool};
///
/// let pool = WorkerPool::threads(3).build(|_, n: u64| Ok::<_, std::fmt::Error>(n))?;
/// let stats = pool.stats();
/// assert_eq!((stats.running, stats.waiting, stats.workers.len()), (0, 0, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// How many workers are there.
    pub alive: usize,
    /// How many jobs run.
    pub running: usize,
    /// How many jobs wait in queues.
    pub waiting: usize,
    /// What each worker has to do, and had; of workers made on demand, one entry for all.
    pub workers: Vec<WorkerLoad>,
}

/// Counts a job that is on its way to a queue, and no more if it does not get there.
struct Loaded<'a>(Option<&'a WorkerCount>);

impl<'a> Loaded<'a> {
    fn new(load: &'a WorkerCount) -> Loaded<'a> {
        load.add();
        Loaded(Some(load))
    }

    fn stays(mut self) {
        self.0 = None;
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|load| load.done());
    }
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> PoolShared<I, T, E> {
    pub(super) fn new(staff: Staff<I>, queue_max: usize, make: Box<Make<I, T, E>>) -> Self {
        let is_one_line = staff.on_demand || staff.shares_line();
        let lines = if is_one_line { 1 } else { staff.count };
        let room = if staff.shares_line() { queue_max.saturating_mul(staff.count) } else { queue_max };
        let free = if staff.on_demand { staff.count } else { 0 };
        let loaded = if staff.on_demand { 1 } else { staff.count };
        let loads: Arc<[WorkerCount]> = (0..loaded).map(|_| WorkerCount::default()).collect();
        let policy = if let Choice::Policy(policy) = staff.choice { policy } else { Balance::default() };
        let desk = |_| {
            let loads = Arc::clone(&loads);
            JobQueue::new(room, free, Box::new(move |idle: &[usize]| policy.choose_idle(idle, &loads)))
        };
        PoolShared {
            desks: (0..lines).map(desk).collect(),
            deaths: loads.iter().map(|_| AtomicU32::new(0)).collect(),
            loads,
            lost: AtomicUsize::new(0),
            make,
            staff,
            queue_max: room.saturating_mul(lines),
            limits: None,
            retry: RetryRule::never(),
            clock: Clock::system(),
            spawner: Spawner::Threads,
            turn: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            alive: Mutex::new(Alive { workers: 0, running: Vec::new(), wakers: Vec::new(), cancels: false }),
        }
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The queue for a job, if one is open.
    fn choose(&self, input: &I) -> Option<usize> {
        let is_open = |line: usize| !self.desks[line].is_closed();
        match self.staff.on_demand || self.staff.shares_line() {
            true => is_open(0).then_some(0),
            false => self.staff.choice.choose(input, &self.loads, &self.turn, is_open),
        }
    }

    /// Counts a job for the worker of a queue. Where all share it, that is counted when one takes the job.
    fn load_of(&self, line: usize) -> Loaded<'_> {
        if self.staff.shares_line() { Loaded(None) } else { Loaded::new(&self.loads[line]) }
    }

    /// Counts jobs of a queue no more.
    fn unload(&self, line: usize, jobs: usize) {
        if !self.staff.shares_line() {
            (0..jobs).for_each(|_| self.loads[line].done());
        }
    }

    /// The queue that a worker takes its jobs from.
    fn line_of(&self, worker: usize) -> usize {
        if self.desks.len() == 1 { 0 } else { worker }
    }

    fn worker(&self, index: usize) -> Worker {
        let limits = self.limits.as_ref().expect("a pool has limits");
        Worker::new(index, limits.for_worker(index))
    }

    /// Starts a worker that does the jobs of a queue.
    pub(super) fn start_worker(this: &Arc<Self>, index: usize) -> io::Result<()> {
        let life = WorkerGuard { shared: Arc::clone(this), worker: index, is_over: false };
        this.alive.lock().workers += 1;
        let shared = Arc::clone(this);
        this.spawner.spawn(
            index,
            Box::pin(async move {
                let mut life = life;
                shared.serve(index).await;
                life.is_over = true;
            }),
        )
    }

    async fn serve(&self, index: usize) {
        let worker = self.worker(index);
        let mut doing = (self.make)(&worker);
        while let Some(job) = self.desks[self.line_of(index)].next(index).await {
            if self.work(job, &worker, &mut doing).await == WorkerHealth::Panicked {
                doing = (self.make)(&worker);
            }
            self.deaths[index].store(0, Ordering::Relaxed);
        }
    }

    /// Does one job, and lists it as running meanwhile.
    async fn work(
        &self,
        job: QueuedInput<I, T, E>,
        worker: &Worker,
        doing: &mut JobHandler<I, T, E>,
    ) -> WorkerHealth {
        let _load = match (self.staff.on_demand, self.staff.shares_line()) {
            (true, _) => Loaded(Some(&self.loads[0])),
            (false, true) => Loaded::new(&self.loads[worker.index()]),
            (false, false) => Loaded(Some(&self.loads[worker.index()])),
        };
        let slot = Arc::clone(&job.promise.0);
        if self.begin(worker.index(), &slot) {
            slot.finish(Err(JobError::Cancelled));
        }
        let health = run(job, worker, doing, &self.retry, &self.clock).await;
        self.alive.lock().running.retain(|(_, other)| !Arc::ptr_eq(other, &slot));
        health
    }

    /// Notes what runs; `true` if nothing is to run any more.
    fn begin(&self, index: usize, slot: &Arc<ResultSlot<T, E>>) -> bool {
        let mut alive = self.alive.lock();
        alive.running.push((index, Arc::clone(slot)));
        alive.cancels
    }

    /// Starts a worker that does one job, and then passes its place on.
    fn start_on_demand(this: &Arc<Self>, job: QueuedInput<I, T, E>) {
        let index = this.made.fetch_add(1, Ordering::Relaxed);
        let life = WorkerGuard { shared: Arc::clone(this), worker: 0, is_over: false };
        this.alive.lock().workers += 1;
        let shared = Arc::clone(this);
        let spawned = this.spawner.spawn(
            index,
            Box::pin(async move {
                let mut life = life;
                let worker = shared.worker(index);
                match caught(|| (shared.make)(&worker)) {
                    Ok(mut doing) => drop(shared.work(job, &worker, &mut doing).await),
                    Err(why) => {
                        shared.loads[0].done();
                        job.promise.0.finish(Err(JobError::Panicked(why)));
                    }
                }
                life.is_over = true;
            }),
        );
        // One that was not begun is dropped with its job and its life, which sees to the rest.
        drop(spawned);
    }

    /// Accepts no more jobs, and calls off those that it has if `how` says so.
    pub(super) fn close(&self, how: Shutdown) {
        self.desks.iter().for_each(JobQueue::close);
        if how == Shutdown::Drain {
            return;
        }
        let running = {
            let mut alive = self.alive.lock();
            alive.cancels = true;
            alive.running.clone()
        };
        running.iter().for_each(|(_, slot)| slot.finish(Err(JobError::Cancelled)));
        for (line, desk) in self.desks.iter().enumerate() {
            for job in desk.clear() {
                self.unload(line, 1);
                job.promise.0.finish(Err(JobError::Cancelled));
            }
        }
    }

    async fn ended(&self) {
        poll_fn(|context| {
            let mut alive = self.alive.lock();
            if alive.workers == 0 {
                return Poll::Ready(());
            }
            alive.wakers.retain(|waker| !waker.will_wake(context.waker()));
            alive.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// The life of a worker. If it ends before its time, another takes its place.
struct WorkerGuard<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> {
    shared: Arc<PoolShared<I, T, E>>,
    worker: usize,
    is_over: bool,
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> WorkerGuard<I, T, E> {
    /// Replaces a worker that died, so that its queue is still served.
    fn replace(&self) {
        let (shared, worker) = (&self.shared, self.worker);
        let deaths = shared.deaths[worker].fetch_add(1, Ordering::Relaxed) + 1;
        if deaths < RESTARTS_MAX && PoolShared::start_worker(shared, worker).is_ok() {
            return;
        }
        let lost = shared.lost.fetch_add(1, Ordering::AcqRel) + 1;
        // Of the workers that share a queue, the others go on with its jobs.
        if !shared.staff.shares_line() || lost == shared.staff.count {
            shared.desks[shared.line_of(worker)].close();
            self.give_up();
        } else {
            shared.desks[0].rouse();
        }
    }

    /// Drops the jobs of the queue, for which no worker is left; that notifies their waiters.
    fn give_up(&self) {
        let line = self.shared.line_of(self.worker);
        let lost = self.shared.desks[line].clear();
        self.shared.unload(line, lost.len());
    }
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> Drop for WorkerGuard<I, T, E> {
    fn drop(&mut self) {
        let shared = &self.shared;
        if shared.staff.on_demand {
            if !self.is_over {
                self.give_up();
            }
            if let Some(job) = shared.desks[0].next_or_free() {
                PoolShared::start_on_demand(shared, job);
            }
        } else if !self.is_over {
            self.replace();
        }
        let wakers = {
            let mut alive = shared.alive.lock();
            alive.workers = alive.workers.saturating_sub(1);
            if alive.workers == 0 { std::mem::take(&mut alive.wakers) } else { Vec::new() }
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> Drop for WorkerPool<I, T, E> {
    fn drop(&mut self) {
        self.0.close(Shutdown::Cancel);
    }
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> fmt::Debug for WorkerPool<I, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alive = self.0.alive.lock().workers;
        f.debug_struct("WorkerPool")
            .field("alive", &alive)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
