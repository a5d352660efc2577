//! The processor: items in, outcomes out, exactly one for each.

mod account;
mod budget;
mod builder;
mod call;
mod driver;
mod dues;
mod entry;
mod outbox;
mod reply;
mod run;
mod shared;
mod slow_start;
mod start;

pub use account::SCOPES_MAX;
pub use builder::Batch;
pub use outbox::Order;
pub use run::{DriverGone, Run, Stopper};
