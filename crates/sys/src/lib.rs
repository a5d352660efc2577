//! What the system can do, and the standard library does not: detecting forks, the clock that all processes of a host
//! share, and a mutex without poison.
//!
//! A process that is forked off has a copy of the memory of its parent: its leases, its waiters, the state of its
//! random generators, and none of its threads. [`generation`] distinguishes such processes, and [`NoFork`] keeps a fork
//! from coming in the middle of something.

mod clock;
mod condvar;
mod generation;
mod mutex;
#[cfg(unix)]
mod no_fork;
#[cfg(not(unix))]
mod no_fork {
    /// There are no forks here.
    pub struct NoFork;

    impl NoFork {
        /// There is nothing to wait for.
        pub fn begin() -> NoFork {
            NoFork
        }
    }
}

pub use clock::monotonic_nanos;
pub use condvar::Condvar;
pub use generation::generation;
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use no_fork::NoFork;
