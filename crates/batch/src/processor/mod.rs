//! The batch processor: takes items, calls the handler, and returns exactly one outcome for each
//! item.

mod account;
mod budget;
mod builder;
mod call;
mod driver;
mod entry;
mod outbox;
mod reply;
mod run;
mod shared;
mod slow_start;
mod start;
mod timers;

pub use account::SCOPES_MAX;
pub use builder::Batch;
pub use outbox::Order;
pub use run::{DriverGone, Run, Stopper};
