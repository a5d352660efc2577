//! Buckets and records in a SQLite file, shared by the processes of one host and durable across crashes.
//!
//! A file needs no server and no setup. Every process that opens it sees the same buckets, whatever process took from
//! them; a process that is killed at any instant leaves the file whole, and nothing that was answered is forgotten.
//!
//! Group commit: all calls that wait while one commit is made are committed together by the next, so many callers cost
//! little more than one. A blocked caller that finds the writer idle runs the commit itself.

mod apply;
mod backend;
mod builder;
mod clock;
mod clock_row;
mod codec;
mod commit_queue;
mod dedup;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod identity;
mod integrity;
mod job;
mod limits;
mod log;
mod open;
mod pause;
mod reader;
mod records;
mod reply_slot;
mod rows;
mod schema;
mod scope;
mod select;
mod store;
mod stores;
mod sweep;
mod threads;
mod txn;
mod wait_queue;
mod writer;

pub use builder::{Durability, FileStoreBuilder};
pub use error::FileOpenError;
pub use store::FileStore;
