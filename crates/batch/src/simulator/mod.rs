//! Providers that are not there, for tests and benchmarks.

mod play;
mod provider;
pub mod sweep;

pub use play::{Played, play, play_at_once};
pub use provider::{Lie, Limit, Manners, Noise, Provider, RetryAfter, Seen};
