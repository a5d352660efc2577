//! Conformance suites: what must hold of every store, and of what is built on it.
//!
//! A suite gets a function that opens a fresh store, which must go by the clock it is given. Each law opens a store of its own,
//! and panics if the law does not hold. A store is right when no suite can tell it from [`Memory`](tollgate_store::Memory).
//!
//! | suite | of | run by |
//! |---|---|---|
//! | [`store`] | [`Store`](tollgate_store::Store): buckets, compared with the core on random traces | [`store::run`] |
//! | [`records`] | [`Records`](tollgate_store::records::Records), compared with a map on random traces | [`records::run`] |
//! | [`backend`] | [`Backend`](tollgate_store::Backend): both together, and usage | [`backend::run`], [`backend::usage_retention`] |
//! | [`catalog`] | the catalog on a store | [`catalog::run`], [`catalog::broken`] |
//! | [`limiter`] | the limiter on a store | [`limiter_suite!`] |
//! | [`set`](mod@set) | limit sets in a store, or in no store | [`set_suite!`] |
//!
//! A new store names this crate in its `[dev-dependencies]`, and runs the suites in `tests/`:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tollgate_conformance::{backend, catalog, records, store};
//! use tollgate_store::{Clock, Memory};
//!
//! fn open(clock: Clock) -> Memory {
//!     Memory::builder().clock(clock).build()
//! }
//!
//! // In a real test, more traces: 40 where a call takes microseconds, 10 where it crosses a network.
//! store::run(2, open);
//! records::run(2, open);
//! backend::run(1, open);
//! catalog::run_one("limits_of_the_first_level_that_has_some_win", &|clock| Arc::new(open(clock)));
//! ```
//!
//! `limiter_suite!` and `set_suite!` make a `#[test]` of every law; each stands in a file of its own:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tollgate_store::{Backend, Clock, Memory};
//!
//! fn open(clock: Clock) -> Arc<dyn Backend> {
//!     Arc::new(Memory::builder().clock(clock).build())
//! }
//!
//! tollgate_conformance::limiter_suite!(open);
//! # fn main() {}
//! ```
//!
//! A random trace that fails prints its seed; `TOLLGATE_SEED=17 cargo test ...` replays it.

pub mod backend;
pub mod catalog;
mod fixture;
pub mod limiter;
mod outage;
mod poll;
mod random;
pub mod records;
pub mod set;
pub mod store;

pub use fixture::OpenBackend;
