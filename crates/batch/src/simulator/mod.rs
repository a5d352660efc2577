//! Providers that are not there, for tests and benchmarks.

mod play;
mod provider;

pub use play::{Played, play};
pub use provider::{Limit, Manners, Provider, RetryAfter, Seen};
