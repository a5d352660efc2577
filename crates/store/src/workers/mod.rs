//! A small runtime for stores across a network, and futures that use it wherever they are polled.

mod reopened;
mod threads;
mod to_the_end;

pub use reopened::Reopened;
pub use threads::{Within, Workers};
pub use to_the_end::ToTheEnd;
