//! A small runtime for stores across a network, and futures that use it wherever they are polled.

mod threads;
mod to_the_end;

pub use threads::{Within, Workers};
pub use to_the_end::ToTheEnd;
