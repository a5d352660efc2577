//! Providers that are not there, for tests and benchmarks.

mod play;
mod provider;
pub mod sweep;

pub use play::{Played, play, play_at_once};
pub use provider::{Lie, Manners, ProviderStats, RetryAfter, SimLimit, SimNoise, SimProvider};
