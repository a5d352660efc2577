//! Workers: jobs done by threads or tasks, each worker with its limits.
//!
//! ```
//! use tollgate::workers::WorkerPool;
//! use tollgate::{demand, AcquireError, Limit};
//!
//! let pool = WorkerPool::threads(4)
//!     .limits([Limit::per_second("rps", 1_000)])
//!     .build(|worker, number: u64| {
//!         let lease = worker.limits().acquire(demand! { rps: 1 }).wait()?;
//!         // ... call the API with `number` ...
//!         drop(lease);
//!         Ok::<_, AcquireError>(number * 2)
//!     })?;
//! let doubled: Vec<u64> = pool.gather(1..=3).wait().into_iter().collect::<Result<_, _>>()?;
//! assert_eq!(doubled, [2, 4, 6]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Jobs wait in queues that are bounded, first come first served: each worker has one of its own where
//! [`Balance::RoundRobin`] or a [`Balancer`] says who does which job, and all share one otherwise, so that no job waits
//! while a worker is idle. A caller that submits a job while its queue is full waits for space, in the order of
//! arrival. A job that panics is an error in its handle, and its worker goes on with a job made anew.

mod balance;
mod builder;
mod gather;
mod handle;
mod job_queue;
mod limits;
mod pool;
#[cfg(feature = "processes")]
mod process;
mod progress;
mod retry;
mod run;
mod spawn;
mod worker;

pub use balance::{Balance, Balancer, WorkerLoad};
pub use builder::{QUEUE_MAX, WORKERS_MAX, WorkerPoolBuilder, WorkersError};
pub use gather::Completed;
pub use handle::{Handle, JobError};
pub use limits::WorkerLimits;
pub use pool::{PoolStats, Shutdown, SubmitError, WorkerPool};
#[cfg(feature = "processes")]
pub use process::{ProcessError, ServeError, serve};
pub use progress::{Bar, JobTally, ProgressObserver};
pub use worker::Worker;
