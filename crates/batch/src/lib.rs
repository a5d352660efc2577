//! Batches: many items, one provider that says 429, and nobody who deadlocks, is lost or doubled.

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
mod summary;
mod time;

pub use histogram::Histogram;
pub use item::{Item, Reply, Try, Usage};
pub use journal::Journal;
pub use observe::{Event, Observer};
pub use outcome::{Failed, FailureClass, Outcome, Why};
pub use policy::Retry;
pub use processor::{Batch, Lost, Order, Run, SCOPES_MAX, Stopper};
pub use scope::Rules;
pub use shared::{Cooling, LOOK_EVERY, SharedCooldown};
pub use summary::{Progress, Summary};
