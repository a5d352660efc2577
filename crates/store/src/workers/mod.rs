//! A small runtime for stores across a network, and futures that use it wherever they are polled.

mod reopened;
mod run_to_completion;
mod threads;

pub use reopened::Reopened;
pub use run_to_completion::ToTheEnd;
pub use threads::{Within, Workers};
