//! Buckets and records in memory that the processes of one host share: no server, no daemon, nothing to set up.
//!
//! A store is a file in `/dev/shm` that every process maps which opens it by its name. There is one lock and one
//! journal: a process that is killed at any instant, in the middle of a change or while others wait for it, leaves the
//! state before the change or the state after it, and the next process goes on from there.
//!
//! Everything is a word of 64 bits that is only ever read as a number, and every number that leads somewhere is checked
//! before it is followed. So a damaged file is an error, and never undefined behaviour.

#[cfg(not(target_os = "linux"))]
compile_error!("tollgate-shm needs the futexes and the /proc of Linux; use tollgate-file on other systems");

mod alloc;
mod apply;
mod arena;
mod backend;
mod builder;
mod check;
mod clock;
mod codec;
mod dedup;
mod deferred;
mod error;
#[cfg(feature = "write-points")]
#[doc(hidden)]
pub mod failpoints;
#[cfg(any(test, fuzzing))]
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub mod fuzz;
mod key;
mod layout;
mod limits;
mod lock;
mod map;
mod open;
mod ordered;
mod process_slots;
mod records;
mod row;
mod scope;
mod store;
mod sweep;
mod table;
mod tx;
mod wait_queue;
mod waiter_list;

pub use builder::ShmStoreBuilder;
pub use error::ShmOpenError;
pub use store::ShmStore;
pub use wait_queue::wait_queues;

/// Returns the id of the user whose stores these are.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
