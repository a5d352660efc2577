//! Batches: many items, one provider that says 429, and nobody who deadlocks, is lost or doubled.

pub mod pace;
mod random;
pub mod scope;
#[cfg(any(test, feature = "simulator"))]
pub mod simulator;
