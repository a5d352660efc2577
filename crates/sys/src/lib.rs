//! System services that the standard library lacks: fork detection, the monotonic clock that all
//! processes of a host share, and a mutex without poisoning.
//!
//! A forked process has a copy of its parent's memory: its leases, its waiters, the state of its
//! random number generators, and none of its threads. [`generation`] detects a fork,
//! and [`NoFork`] delays forks while a thread changes shared state.
//!
//! ```
//! use tollgate_sys::{Mutex, NoFork, generation};
//!
//! let (count, created_in) = (Mutex::new(0), generation());
//! {
//!     let _no_fork = NoFork::begin();
//!     *count.lock() += 1;
//! }
//! assert_eq!((*count.lock(), generation()), (1, created_in));
//! ```

mod clock;
mod condvar;
mod cycles;
mod futex;
mod generation;
mod mutex;
#[cfg(unix)]
mod no_fork;
#[cfg(not(unix))]
mod no_fork {
    /// Does nothing: this system has no fork.
    pub struct NoFork;

    impl NoFork {
        /// Returns at once.
        pub fn begin() -> NoFork {
            NoFork
        }
    }
}

pub use clock::monotonic_nanos;
pub use condvar::Condvar;
pub use cycles::cycles;
pub use generation::generation;
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use no_fork::NoFork;
