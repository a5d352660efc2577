//! A job's view of the worker that runs it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::LimitPool;

/// The worker that does a job. Cloning shares it.
///
/// ```
/// use tollgate::workers::{Worker, WorkerPool};
///
/// let pool = WorkerPool::threads(1).build(|worker: &Worker, (): ()| Ok::<_, std::fmt::Error>((worker.index(), worker.tries())))?;
/// assert_eq!(pool.submit(()).wait()?.wait()?, (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Worker(Arc<WorkerInner>);

struct WorkerInner {
    index: usize,
    limits: LimitPool,
    tries: AtomicU32,
}

impl Worker {
    pub(super) fn new(index: usize, limits: LimitPool) -> Worker {
        Worker(Arc::new(WorkerInner { index, limits, tries: AtomicU32::new(0) }))
    }

    /// Its number: from 0 on, and on and on for workers that are made on demand.
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// Its limits: a pool of its own over sets that it shares with the others. Never nothing: without limits it has an
    /// empty set.
    pub fn limits(&self) -> &LimitPool {
        &self.0.limits
    }

    /// The number of the attempt of its job this is, from 1 on.
    pub fn tries(&self) -> u32 {
        self.0.tries.load(Ordering::Relaxed)
    }

    pub(super) fn begin_try(&self, tries: u32) {
        self.0.tries.store(tries, Ordering::Relaxed);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.0.index).finish_non_exhaustive()
    }
}
