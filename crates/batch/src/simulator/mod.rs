//! Simulated providers, for tests and benchmarks.

mod provider;
mod simulate;
pub mod sweep;

pub use provider::{Disclosure, FalseHeaders, ProviderStats, RetryAfter, SimLimit, SimNoise, SimProvider};
pub use simulate::{Simulated, simulate, simulate_without_waiting};
