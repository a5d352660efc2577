//! Batches: many items, one provider that says 429, and no item that deadlocks, is lost or doubled.
//!
//! ```
//! use tollgate_batch::{Batch, Item, CallReply, ItemAttempt};
//! use tollgate_provider::Hint;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let items = ["one", "two", "three"].into_iter().map(|word| Item::new(word, word).tokens(20));
//! let mut run = Batch::new().workers(8).run(items, |call: ItemAttempt<&str>| async move {
//!     // ... call the API, and read its reply with `tollgate_provider::read` ...
//!     CallReply::done(call.payload().len(), Hint::ok())
//! });
//! while let Some(outcome) = run.next().await {
//!     assert_eq!(outcome.result, Ok(outcome.id.len()));
//! }
//! # });
//! ```
//!
//! - [`Batch`] takes items from an iterator or a stream, in bounded memory, and gives exactly one [`Outcome`] for each.
//! - An item that meets a 429 is parked with all it knows, and its worker takes another. A 429 is no attempt; no item
//!   that shares the [scope] starts before the provider's deadline, and then they start one after the other.
//! - The [pace] is learned: from headers where there are any, and from the 429s themselves where not.
//! - A [`Journal`] has results on disk before they are returned, and a later run calls only what is missing.
//! - A [`SharedCooldown`] lets processes and hosts cool down together, through any store.
//!
//! What is decided is decided by pure machines ([`scope::PaceScope`], [`pace::Pace`]), which take the time as an argument; one
//! task owns them, and all calls of a batch. It takes its time from tokio, which a test can pause, or from a
//! [`Clock`](tollgate::Clock), which a test can turn.

#[cfg(doctest)]
mod guide;
mod histogram;
mod item;
pub mod journal;
mod observe;
mod outcome;
pub mod pace;
mod policy;
mod processor;
mod random;
pub mod scope;
mod shared;
#[cfg(any(test, feature = "simulator"))]
pub mod simulator;
mod source;
mod status;
mod summary;
mod time;

pub use histogram::Histogram;
pub use item::{CallReply, Item, ItemAttempt, TokenUsage};
pub use journal::Journal;
pub use observe::{BatchEvent, BatchObserver, SkipReason};
pub use outcome::{FailureClass, ItemError, Outcome, StopReason};
pub use processor::{Batch, DriverGone, Order, Run, SCOPES_MAX, Stopper};
pub use scope::CooldownPolicy;
pub use shared::{Cooling, LOOK_EVERY, SharedCooldown};
pub use status::{CooldownStatus, Learned, ScopeStatus};
pub use summary::{BatchProgress, Summary};
pub use tollgate::{Backoff, Jitter, Retry};
