//! Processes that are forked off while their parent holds leases and waits: here, because nothing else may fork.

#[path = "../support/mod.rs"]
mod support;

mod history;
mod leases;
mod living;
mod opened;
mod sets;
mod stores;
mod storm;
