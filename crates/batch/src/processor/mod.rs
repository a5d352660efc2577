//! The processor: items in, outcomes out, exactly one for each.

mod builder;
mod call;
mod driver;
mod dues;
mod entry;
mod ledger;
mod outbox;
mod place;
mod reply;
mod run;
mod shared;
mod slow_start;
mod start;

pub use builder::Batch;
pub use outbox::Order;
pub use place::SCOPES_MAX;
pub use run::{DriverGone, Run, Stopper};
