//! The memory store: what it counts, what it forgets, and what it does when asked twice.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

mod counts;
mod eviction;
mod faults;
mod fixture;
mod gone;
mod ids;
mod keys;
mod pins;
