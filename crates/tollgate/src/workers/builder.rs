use std::future::Future;
use std::io;
use std::sync::Arc;

use tollgate_core::LimitsError;
use tollgate_store::Clock;

use super::balance::{Balance, Balancer, Choice};
use super::limits::{WorkerLimits, check_shared};
use super::pool::{PoolShared, Staff, WorkerPool};
use super::retry::RetryRule;
use super::run::{JobHandler, Trying};
use super::spawn::Spawner;
use super::worker::Worker;
use crate::Retry;

/// How many jobs may wait in the queue of one worker, unless the pool says otherwise.
pub const QUEUE_MAX: usize = 1_024;

/// How many workers a pool may have.
pub const WORKERS_MAX: usize = 4_096;

/// Why there is no pool of workers.
///
/// ```
/// use tollgate::workers::{WorkerPool, WorkersError};
///
/// let none = WorkerPool::threads(0).build(|_, n: u64| Ok::<_, std::fmt::Error>(n));
/// assert!(matches!(none, Err(WorkersError::Count(0))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkersError {
    /// The limits do not make a set.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// None, or too many.
    #[error("the pool is to have {0} workers, but must have 1 to {WORKERS_MAX}")]
    Count(usize),
    /// A limit set that workers in other processes cannot see.
    #[error(
        "set {0} lives in the memory of this process, where the workers of others cannot see it; open it in a store \
         that they share: LimitSet::builder().store(..).name(..)"
    )]
    NotShared(usize),
    /// There is no runtime to run tasks on.
    #[error("there is no tokio runtime here; build the pool inside one, or use threads")]
    NoRuntime,
    /// The system starts no more threads.
    #[error("a worker could not be started: {0}")]
    Spawn(#[from] io::Error),
}

/// A pool of workers in the making. What is said here holds for every worker.
///
/// ```
/// use tollgate::workers::{Balance, WorkerPool};
///
/// let pool = WorkerPool::threads(4)
///     .limits([tollgate::Limit::per_second("rps", 100)])
///     .balance(Balance::LeastActive)
///     .queue(16)
///     .build(|worker, n: u64| Ok::<_, std::fmt::Error>(n * 10 + worker.tries() as u64))?;
/// assert_eq!(pool.submit(4).wait()?.wait()?, 41);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct WorkerPoolBuilder<I, T, E> {
    kind: WorkerKind,
    count: usize,
    on_demand: bool,
    limits: WorkerLimits,
    across_processes: bool,
    choice: Choice<I>,
    queue_max: usize,
    retry: RetryRule<T, E>,
    clock: Clock,
}

#[derive(Clone, Copy)]
pub(super) enum WorkerKind {
    Threads,
    #[cfg(feature = "tokio")]
    Tasks,
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static> WorkerPoolBuilder<I, T, E> {
    pub(super) fn new(kind: WorkerKind, count: usize) -> Self {
        WorkerPoolBuilder {
            kind,
            count,
            on_demand: false,
            limits: ().into(),
            across_processes: false,
            choice: Choice::Policy(Balance::default()),
            queue_max: QUEUE_MAX,
            retry: RetryRule::never(),
            clock: Clock::system(),
        }
    }

    /// What the workers are limited by. By default nothing, which is an empty set.
    pub fn limits(self, limits: impl Into<WorkerLimits>) -> Self {
        WorkerPoolBuilder { limits: limits.into(), ..self }
    }

    /// There are workers in other processes that share these limits: a set that they cannot see is refused.
    pub fn across_processes(self) -> Self {
        WorkerPoolBuilder { across_processes: true, ..self }
    }

    #[cfg(feature = "processes")]
    pub(super) fn in_threads(self) -> Self {
        WorkerPoolBuilder { kind: WorkerKind::Threads, ..self }
    }

    /// Makes a worker for each job, with an index that counts on, and at most as many at once as the pool is to have.
    pub fn on_demand(self) -> Self {
        WorkerPoolBuilder { on_demand: true, ..self }
    }

    /// Which worker a job is handed to. Has no meaning for workers that are made on demand.
    pub fn balance(self, balance: Balance) -> Self {
        WorkerPoolBuilder { choice: Choice::Policy(balance), ..self }
    }

    /// Hands jobs to workers by a rule of its own. Has no meaning for workers that are made on demand.
    pub fn balancer(self, balancer: impl Balancer<I> + 'static) -> Self {
        WorkerPoolBuilder { choice: Choice::Own(Arc::new(balancer)), ..self }
    }

    /// How many jobs may wait in the queue of a worker, and at least 1; where all workers share one queue, so many for
    /// each of them; of workers that are made on demand, in the queue of all of them. By default [`QUEUE_MAX`].
    pub fn queue(self, queue_max: usize) -> Self {
        WorkerPoolBuilder { queue_max: queue_max.max(1), ..self }
    }

    /// How often a job is tried, and how long the pauses in between are. By default once. Between two tries it holds
    /// nothing: what it took of limits has ended with the try, and what it answered is dropped before the pause.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry.retry = retry;
        self
    }

    /// Tries again only after errors that this says yes to. By default after any.
    pub fn retry_if(mut self, wants_more: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.retry.on_error = Some(Arc::new(wants_more));
        self
    }

    /// Tries again until this says yes to what the job answered; if it never does, that is
    /// [`JobError::Invalid`](super::JobError::Invalid).
    ///
    /// ```
    /// use tollgate::Retry;
    /// use tollgate::workers::WorkerPool;
    ///
    /// let pool = WorkerPool::threads(1)
    ///     .retry(Retry::attempts(3).pause(std::time::Duration::ZERO))
    ///     .retry_if(|error: &&str| *error == "busy")
    ///     .retry_until(|answer: &u32| *answer == 2)
    ///     .build(|worker, (): ()| Ok(worker.tries()))?;
    /// assert_eq!(pool.submit(()).wait()?.wait(), Ok(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry_until(mut self, is_valid: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.retry.is_valid = Some(Arc::new(is_valid));
        self
    }

    /// The clock that pauses between tries go by. By default the system's.
    pub fn clock(self, clock: Clock) -> Self {
        WorkerPoolBuilder { clock, ..self }
    }

    /// Workers that do `job` with every input.
    ///
    /// # Errors
    ///
    /// [`WorkersError`].
    pub fn build<F>(self, job: F) -> Result<WorkerPool<I, T, E>, WorkersError>
    where
        F: FnMut(&Worker, I) -> Result<T, E> + Clone + Send + Sync + 'static,
    {
        self.build_with(move |_: &Worker| job.clone())
    }

    /// Workers that each make a job of their own, with whatever it needs in it, and do that with every input. After a
    /// panic it is made anew.
    ///
    /// # Errors
    ///
    /// [`WorkersError`].
    pub fn build_with<M, F>(self, make: M) -> Result<WorkerPool<I, T, E>, WorkersError>
    where
        M: Fn(&Worker) -> F + Send + Sync + 'static,
        F: FnMut(&Worker, I) -> Result<T, E> + Send + 'static,
    {
        self.start(move |worker| {
            let mut job = make(worker);
            Box::new(move |worker: &Worker, input: I| -> Trying<T, E> {
                Box::pin(std::future::ready(job(worker, input)))
            })
        })
    }

    /// Workers that do `job`, which is asynchronous, with every input. On threads, each waits for it in its own.
    ///
    /// # Errors
    ///
    /// [`WorkersError`].
    pub fn build_async<F, R>(self, job: F) -> Result<WorkerPool<I, T, E>, WorkersError>
    where
        F: FnMut(Worker, I) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.start(move |_| {
            let mut job = job.clone();
            Box::new(move |worker: &Worker, input: I| -> Trying<T, E> {
                Box::pin(job(worker.clone(), input))
            })
        })
    }

    fn start(
        self,
        make: impl Fn(&Worker) -> JobHandler<I, T, E> + Send + Sync + 'static,
    ) -> Result<WorkerPool<I, T, E>, WorkersError> {
        if !(1..=WORKERS_MAX).contains(&self.count) {
            return Err(WorkersError::Count(self.count));
        }
        let limits = self.limits.into_pool()?;
        if self.across_processes {
            check_shared(&limits)?;
        }
        let spawner = match self.kind {
            WorkerKind::Threads => Spawner::Threads,
            #[cfg(feature = "tokio")]
            WorkerKind::Tasks => {
                let here = tokio::runtime::Handle::try_current();
                Spawner::Tasks(here.map_err(|_| WorkersError::NoRuntime)?)
            }
        };
        let staff = Staff { count: self.count, on_demand: self.on_demand, choice: self.choice };
        let shared = Arc::new(PoolShared::new(staff, self.queue_max, Box::new(make)).with(|shared| {
            shared.limits = Some(limits);
            shared.retry = self.retry;
            shared.clock = self.clock;
            shared.spawner = spawner;
        }));
        if !self.on_demand {
            for index in 0..self.count {
                if let Err(error) = PoolShared::start_worker(&shared, index) {
                    shared.close(super::Shutdown::Cancel);
                    return Err(error.into());
                }
            }
        }
        Ok(WorkerPool(shared))
    }
}
