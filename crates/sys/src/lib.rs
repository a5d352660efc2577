//! What the system tells, and the standard library does not: forks, and the clock that all processes of a host share.
//!
//! A process that is forked off has a copy of the memory of its parent: its leases, its waiters, the state of its random
//! generators, and none of its threads. [`generation`] tells such processes apart, and [`NoFork`] keeps a fork from coming in
//! the middle of something.

mod clock;
mod generation;
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
pub use generation::generation;
pub use no_fork::NoFork;
