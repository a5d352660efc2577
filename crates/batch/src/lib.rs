//! Batch processing against rate-limited APIs: many items, a provider that answers 429, and exactly
//! one outcome for each item.
//!
//! ```
//! use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
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
//! - [`Batch`] takes items from an iterator or a stream, in bounded memory, and returns exactly one
//!   [`Outcome`] for each.
//! - An item that meets a 429 is parked with its state, and its worker calls another item. A 429
//!   does not count as an attempt; no item of the same [scope] starts before the provider's
//!   deadline, and then they start one after the other.
//! - The [pace] is learned: from headers if the provider sends them, and otherwise from its 429s.
//! - A [`Journal`] stores outcomes on disk before they are returned, and a later run calls only the
//!   items that are missing.
//! - A [`SharedCooldown`] lets processes and hosts cool down together, through any store.
//!
//! Decisions are made by pure state machines ([`scope::PaceScope`], [`pace::Pace`]) that take the
//! time as an argument. One task owns them and all calls of a batch. Its time is tokio's, which a
//! test can pause, or that of a [`Clock`](tollgate::Clock), which a test can set.

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
pub mod scope;
mod shared;
// Hidden: for the tests and benchmarks of this workspace, without any promise of stability.
#[cfg(any(test, feature = "simulator"))]
#[doc(hidden)]
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
pub use shared::{Cooling, POLL_INTERVAL, SharedCooldown};
pub use status::{CooldownStatus, Learned, ScopeStatus};
pub use summary::{BatchProgress, Summary};
pub use tollgate::{Backoff, Jitter, Retry};
